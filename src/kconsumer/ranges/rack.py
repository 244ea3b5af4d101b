"""The rack of an executor: brokers serve consumers from replicas in their rack (KIP-392).

Owns: with_rack. Threads: a Spark Python worker's thread. Never: guesses a rack: the executor's environment states it.
"""

from __future__ import annotations

import logging
import os
from typing import Final

from kconsumer.ranges.options import ReadOptions

VARIABLE: Final = "KCONSUMER_RACK"

_log = logging.getLogger("kconsumer.ranges")


def with_rack(options: ReadOptions) -> dict[str, str]:
    """Return the configuration of this executor's consumers."""
    if not options.rack_aware or "client.rack" in options.consumer_config:
        return options.consumer_config
    rack = os.environ.get(VARIABLE, "")
    if not rack:
        _log.warning("rackAware has no effect: the environment of the executor has no %s", VARIABLE)
        return options.consumer_config
    return {**options.consumer_config, "client.rack": rack}
