"""The checks of an OAUTHBEARER token, and the interface of token sources.

Owns: check_token, TokenSource. Threads: any. Never: obtains a token, puts one into a message.
"""

from __future__ import annotations

import math
import re
import time
from typing import TYPE_CHECKING, Final, Protocol

from kconsumer.config.sasl import LONGEST_LIFE_S, checked_extensions
from kconsumer.data.call import Call

if TYPE_CHECKING:
    from kconsumer._core.consumer.consumer import ConsumerCore

__all__ = ["TokenSource", "check_token"]

# RFC 6750 allows fewer characters, but a broker may accept all that librdkafka allows.
_TOKEN: Final = re.compile(r"[\x20-\x7e\t\r\n]+")


def check_token(token: object, expires_at: object, extensions: object = None) -> tuple[str, int, dict[str, str]]:
    """Return the token, its remaining life in ms, and its extensions.

    Raises:
        TypeError, ValueError: OAUTHBEARER cannot carry one of them, or the token has expired. The message does not
            contain the token.
    """
    if not isinstance(token, str):
        raise TypeError(f"an OAUTHBEARER token must be a str, not {type(token).__name__}")
    if isinstance(expires_at, bool) or not isinstance(expires_at, (int, float)):
        raise TypeError(f"the expiry of a token must be in seconds since the epoch, not {type(expires_at).__name__}")
    if not _TOKEN.fullmatch(token):
        raise ValueError("an OAUTHBEARER token must be non-empty printable ASCII")
    try:
        life_s = expires_at - time.time()
    except OverflowError:  # an int too large for a float
        life_s = math.inf if expires_at > 0 else -math.inf
    if not life_s > 0:
        raise ValueError(f"the token expired {-life_s:.0f} s ago")
    return token, int(min(life_s, LONGEST_LIFE_S) * 1000), checked_extensions(extensions)


class TokenSource(Protocol):
    """A source of tokens for a consumer."""

    def start(self, consumer: ConsumerCore) -> Call[None]:
        """Start: the consumer has just been created. Raises if its creation must fail."""
        ...

    def wanted(self, consumer: ConsumerCore) -> Call[None]:
        """Obtain a token for the core, inside a call of the application."""
        ...

    def stop(self) -> None:
        """Stop: the consumer is closed."""
