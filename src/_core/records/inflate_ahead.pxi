"""Owns: the step that inflates batches of a decode job before the decoder reaches them.

thread: N while the application decodes, or the decoding thread while the other thread inflates the decoder's batch.
Never: reports a bad batch (the decoder finds it again when it reaches the batch), works longer than one slice (it
leaves a larger batch to the decoder, which can inflate it in slices).
"""

cdef enum:
    ENOUGH_BYTES = 512 * 1024      # inflate several small batches in one step
    LONGEST_BYTES = 4 << 20
    WIDEST_BYTES = 1 << 20         # compressed size: snappy inflates a whole batch in one call


cdef bint inflate_ahead(InflateAhead* ahead, BlockPool* pool) noexcept nogil:
    cdef Inflater* inflater = NULL
    cdef AheadBatch batch
    cdef size_t inflated = 0
    # A claimed batch is finished or given up in this call, so the decoder waits for a busy one without a timeout
    # (tests/unit/records/test_inflate_ahead.py).
    while inflated < ENOUGH_BYTES and ahead.claim(&batch):
        if inflater == NULL:
            inflater = inflater_acquire(pool)
        if inflater != NULL and batch.end - batch.begin <= WIDEST_BYTES and inflate_whole(inflater, ahead, &batch):
            # With this reference make_room() does not grow the block: its bytes stay while the decoder reads them.
            BlockPool.retain(inflater.block)
            batch.block = inflater.block
            batch.records_begin = inflater.begin
            batch.records_end = inflater.at
            inflated += inflater.at - inflater.begin
        else:
            # There is no result, but the work took at least as long.
            inflated += ENOUGH_BYTES
        ahead.put(batch)
    if inflater != NULL:
        inflater_release(inflater)
    return inflated > 0


cdef bint inflate_whole(Inflater* inflater, InflateAhead* ahead, AheadBatch* batch) noexcept nogil:
    cdef InflateResult result = inflate_begin(inflater, batch.codec, 2, ahead.data + batch.body, batch.end - batch.body,
                                              ahead.length - batch.end, ahead.limit)
    while result == INFLATE_MORE and inflater.at - inflater.begin < LONGEST_BYTES:
        result = inflate_step(inflater, LONGEST_BYTES)
    return result == INFLATE_DONE
