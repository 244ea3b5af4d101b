"""Types of ValueSource; see value_source.pyx."""

from typing import Any

class ValueSource:
    def __init__(self, values: Any) -> None: ...
    def __len__(self) -> int: ...
