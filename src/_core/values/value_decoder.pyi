"""Types of ValueDecoder and DecodedValues; see value_decoder.pyx."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from kconsumer._core.values.value_source import ValueSource

HEADER_IDS: int

class RowError(NamedTuple):
    row: int
    reason: str
    field: str
    position: int
    value: bytes

class DecodedValues:
    def __len__(self) -> int: ...
    @property
    def error_count(self) -> int: ...
    @property
    def errors(self) -> list[RowError]: ...
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...

class AvroProgram:
    def __init__(self, ops: Sequence[Any]) -> None: ...

class ValueDecoder:
    def __init__(self, nodes: Sequence[Any], framing: tuple[int, int], epoch_unit: int) -> None: ...
    def schema_ids(self, source: ValueSource) -> list[int]: ...
    def decode_avro(
        self, source: ValueSource, any: AvroProgram | None, by_id: dict[int, AvroProgram],
    ) -> DecodedValues: ...
    def decode_json(self, source: ValueSource) -> DecodedValues: ...

def read_arrow_schema(source: Any) -> Any: ...
