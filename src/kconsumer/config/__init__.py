"""Configuration: turns a dict of properties into checked Settings.

properties.py and security_properties.py (TLS, SASL) hold the table of properties; property.py has its types. values.py
reads a value. sasl.py and tls.py check properties against each other. parsing.py runs all steps and returns Settings.
Threads: any. Never: opens a connection, uses a consumer.
"""

from kconsumer.config.parsing import check, parse, parse_update, unknown_property
from kconsumer.config.properties import OffsetReset
from kconsumer.config.settings import Settings
from kconsumer.config.values import Endpoint

__all__ = ["Endpoint", "OffsetReset", "Settings", "check", "parse", "parse_update", "unknown_property"]
