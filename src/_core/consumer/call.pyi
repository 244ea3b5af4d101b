"""Types of Question; see call.pyx. For internal use."""

from typing import Any

class Question:
    @property
    def done(self) -> bool: ...
    @property
    def until_us(self) -> int | None: ...
    def take(self) -> Any: ...
