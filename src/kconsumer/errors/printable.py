"""Makes text from brokers and producers safe to show in terminals and log files.

Owns: printable, json_text. Threads: any. Never: writes the text.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["json_text", "printable"]

# Control characters can control terminals. Some marks reorder or hide text. Line separators forge lines. Lone
# surrogates represent bytes that are not UTF-8. re compiles the pattern on first use, not in every import.
_UNSAFE: Final = (
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]")
_SHORT: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def _escape(char: str) -> str:
    number = ord(char)
    if 0xDC80 <= number <= 0xDCFF:  # a byte that surrogateescape kept
        number -= 0xDC00
    if number > 0xFFFF:
        return f"\\U{number:08x}"
    return _SHORT.get(char) or (f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}")


def printable(text: str, keep: str = "") -> str:
    r"""Escape characters that control a terminal, forge a log line or reorder text.

    Args:
        text: any str, also with undecodable bytes as surrogates.
        keep: characters to keep unescaped, such as ``"\n\t"`` in a record's value.

    Returns:
        str: one line (unless `keep` has line feeds), with escapes such as ``\x1b`` for the unsafe characters.
    """
    return re.sub(_UNSAFE, lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def json_text(value: object) -> str:
    """Write a value as one line of JSON with unsafe characters escaped.

    JSON readers undo the escapes. U+FFFD replaces bytes that are not UTF-8.
    """
    import json  # not at the top: most programs do not need it

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return re.sub(_UNSAFE, lambda found: "\ufffd" if "\ud800" <= found[0] <= "\udfff" else json.dumps(found[0])[1:-1],
                  text)
