"""Types of array_stream; see array_stream.pyx."""

from collections.abc import Callable, Iterable
from typing import Any

def array_stream(schema: Callable[[], Any], arrays: Iterable[tuple[Any, Any]]) -> Any: ...
