"""array_stream: an Arrow stream of arrays that Python code makes."""

import pyarrow as pa
import pytest

from kconsumer._core.consumer.consumer import array_stream

SCHEMA = pa.schema([("a", pa.int64())])


class Stream:
    """A stream whose second array cannot be made."""

    def __arrow_c_stream__(self, requested_schema=None):
        return array_stream(SCHEMA.__arrow_c_schema__, self.arrays())

    def arrays(self):
        yield pa.record_batch({"a": [1]}, SCHEMA).__arrow_c_array__()
        raise TimeoutError("no progress")


def test_a_stream_that_has_failed_does_not_end_as_if_it_were_complete():
    reader = pa.RecordBatchReader.from_stream(Stream())
    assert reader.read_next_batch().to_pydict() == {"a": [1]}
    for _ in range(2):
        with pytest.raises(OSError, match="TimeoutError: no progress"):
            reader.read_next_batch()
