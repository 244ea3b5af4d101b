"""How far another query has read, which this one must not overtake: an ingestion's dead letters follow its output.

Owns: the file with the other query's progress. Threads: tell() and followed() each in one process of the driver's host.
Never: asks a broker.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from kconsumer.ranges.offsets import Progress


def tell(path: str, progress: Progress) -> None:
    """Say how far the other query has read. A reader finds the old text or the new one."""
    new = f"{path}.new"
    Path(new).write_text(json.dumps(progress.to_json()), encoding="utf-8")
    os.replace(new, path)


def followed(path: str, start: Progress) -> Progress:
    """The end of a trigger that begins at `start`: as far as the other query has read.

    Never before `start`: a query of an earlier version may have overtaken the other one. An empty file says that the
    other query has not read anything.
    """
    text = Path(path).read_text(encoding="utf-8")
    if not text:
        return start
    other = Progress.from_json(json.loads(text))
    recreated = set(start.recreated(other.ids))
    own = {place: at for place, at in start.offsets.items() if place[0] not in recreated and place not in other.gone}
    return replace(other, offsets={place: max(other.offsets.get(place, 0), own.get(place, 0))
                                   for place in sorted(other.offsets.keys() | own.keys())})
