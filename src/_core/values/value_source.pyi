"""Types of ValueSource; see value_source.pyx."""

from typing import Any

class ValueSource:
    topics: tuple[str, ...]
    keys: bool
    def __init__(self, values: Any) -> None: ...
    def schema_headers(self) -> list[bytes]: ...
    def __len__(self) -> int: ...
