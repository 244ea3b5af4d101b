"""Owns: the Arrow schema and arrays of decoded columns. All arrays share the columns; no column is copied.

thread: A; release callbacks on any thread. Never: touches Python, changes the columns.
"""

cdef ArrowField value_field(const Plan* plan, int32_t node) noexcept nogil:
    cdef ArrowField field
    cdef const ValueNode* n = &plan.nodes[node]
    cdef size_t i
    field.name = n.name
    field.format = n.format
    field.nullable = n.nullable
    if n.type == VALUE_DICTIONARY:
        field.dictionary.assign(b"u")
    for i in range(n.children.size()):
        field.children.push_back(value_field(plan, n.children[i]))
    return field


cdef Status export_values(const shared_ptr[Decoded]& decoded, int32_t node, ArrowArray* out) noexcept nogil:
    cdef const Column* column = &decoded.get().columns.columns[node]
    cdef const ValueNode* n = &decoded.get().plan_pointer().nodes[node]
    cdef ArrowArray* child
    cdef Status status
    cdef size_t i
    open_array(out, column.length, 0, column.nulls, NULL)
    hold_decoded(out, decoded)
    if n.type != VALUE_NULL:
        add_buffer(out, column.validity if column.nulls > 0 else NULL)
    if n.type != VALUE_NULL and n.type != VALUE_STRUCT:
        add_buffer(out, column.values)
    if column.has_offsets and n.type != VALUE_LIST and n.type != VALUE_MAP:
        add_buffer(out, column.data.data)
    for i in range(n.children.size()):
        child = add_child(out)
        if child == NULL:
            return out_of_memory()
        status = export_values(decoded, n.children[i], child)
        if not status.ok():
            return status
    if n.type == VALUE_DICTIONARY:
        return add_dictionary(out, n.symbols)
    return status
