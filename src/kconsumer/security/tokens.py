"""The checks of an OAUTHBEARER token, and the interface of token sources.

Owns: check_token, TokenSource. Threads: any. Never: obtains a token, names one in a message.
"""

from __future__ import annotations

import math
import re
import time
from typing import TYPE_CHECKING, Final, Protocol

from kconsumer.config.sasl import LONGEST_LIFE_S, checked_extensions
from kconsumer.data.call import Call

if TYPE_CHECKING:
    from kconsumer._core.consumer.consumer_core import ConsumerCore

__all__ = ["TokenSource", "check_token"]

# RFC 6750 has fewer characters, but a broker may take what librdkafka lets through.
_TOKEN: Final = re.compile(r"[\x20-\x7e\t\r\n]+")


def check_token(token: object, expires_at: object, extensions: object = None) -> tuple[str, int, dict[str, str]]:
    """The token, its remaining life in ms, and its extensions.

    Raises:
        TypeError, ValueError: one of them is not what OAUTHBEARER can carry, or the token has expired. The message
            names no token.
    """
    if not isinstance(token, str):
        raise TypeError(f"an OAUTHBEARER token must be a str, not {type(token).__name__}")
    if isinstance(expires_at, bool) or not isinstance(expires_at, (int, float)):
        raise TypeError(f"the expiry of a token must be in seconds since the epoch, not {type(expires_at).__name__}")
    if not _TOKEN.fullmatch(token):
        raise ValueError("an OAUTHBEARER token must be printable ASCII, and not empty")
    try:
        life_s = expires_at - time.time()
    except OverflowError:  # an int beyond every float
        life_s = math.inf if expires_at > 0 else -math.inf
    if not life_s > 0:
        raise ValueError(f"the token has expired {-life_s:.0f} s ago")
    return token, int(min(life_s, LONGEST_LIFE_S) * 1000), checked_extensions(extensions)


class TokenSource(Protocol):
    """A source of tokens for a consumer."""

    def start(self, consumer: ConsumerCore) -> Call[None]:
        """A call: the consumer has just been made. Raises where that must not succeed."""
        ...

    def wanted(self, consumer: ConsumerCore) -> Call[None]:
        """A part of a call: the core asks for a token, inside a call of the application's."""
        ...

    def stop(self) -> None:
        """The consumer is closed."""
