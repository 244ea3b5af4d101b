"""A decoder's columns for rows, checked for the properties of every decoder."""

import pyarrow as pa


def decoded(decoder, rows):
    """(rows as Python objects, reasons by row): the array is valid Arrow, and bad rows are null."""
    out = decoder.decode(rows)
    array = pa.array(out)
    array.validate(full=True)
    assert len(array) == len(rows)
    for bad in out.errors:
        assert not array[bad.row].is_valid and bad.value == rows[bad.row] and 0 <= bad.position <= len(bad.value)
    return array.to_pylist(), {bad.row: bad.reason for bad in out.errors}
