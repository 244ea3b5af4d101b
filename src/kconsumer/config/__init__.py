"""Configuration: from a dict of properties to checked Settings.

The table of properties is properties.py (TLS and SASL: security_properties.py), made of what property.py has. values.py
reads one value, sasl.py and tls.py check what belongs together, parsing.py does all of it, and Settings is the result.
Threads: any. Never: connects to anything, knows a consumer.
"""

from kconsumer.config.parsing import parse, parse_update
from kconsumer.config.properties import OffsetReset
from kconsumer.config.settings import Settings
from kconsumer.config.values import Endpoint

__all__ = ["Endpoint", "OffsetReset", "Settings", "parse", "parse_update"]
