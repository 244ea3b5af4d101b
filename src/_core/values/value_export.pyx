"""Owns: the Arrow schema and arrays of decoded columns. Every array shares the columns, none is copied.

thread: A; release callbacks on any thread. Never: touches Python, changes the columns.
"""
from libc.string cimport memcpy

from kconsumer._core.records.arrow_build cimport (
    add_buffer, add_child, new_dictionary, open_array, out_of_memory, own_buffer,
)


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


cdef Status export_symbols(const ValueNode* node, ArrowArray* array) noexcept nogil:
    cdef ArrowArray* out = new_dictionary(array)
    cdef size_t count = node.symbols.size()
    cdef size_t bytes = 0
    cdef size_t i
    cdef int32_t* offsets
    cdef char* data
    if out == NULL:
        return out_of_memory()
    open_array(out, <int64_t>count, 0, 0, NULL)
    add_buffer(out, NULL)
    for i in range(count):
        bytes += node.symbols[i].size()
    offsets = <int32_t*>own_buffer(out, (count + 1) * 4)
    data = <char*>own_buffer(out, bytes)
    if offsets == NULL or data == NULL:
        return out_of_memory()
    bytes = 0
    for i in range(count):
        offsets[i] = <int32_t>bytes
        memcpy(data + bytes, node.symbols[i].data(), node.symbols[i].size())
        bytes += node.symbols[i].size()
    offsets[count] = <int32_t>bytes
    return Status()


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
        return export_symbols(n, out)
    return status
