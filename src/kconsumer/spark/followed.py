"""The progress of another query as the limit of this one: an ingestion's dead letters follow its output.

Owns: the file with the other query's progress. Threads: write_progress() and followed() each run in a process on the
driver's host.
Never: sends a request.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from kconsumer.ranges.offsets import Progress


def write_progress(path: str, progress: Progress) -> None:
    """Write the other query's progress. A reader finds the old text or the new text."""
    new = f"{path}.new"
    Path(new).write_text(json.dumps(progress.to_json()), encoding="utf-8")
    os.replace(new, path)


def followed(path: str, start: Progress) -> Progress:
    """Return the end of a trigger from `start`: the other query's progress.

    It is never before `start`: a query of an earlier version may have overtaken the other one. An empty file means that
    the other query has read nothing.
    """
    text = Path(path).read_text(encoding="utf-8")
    if not text:
        return start
    other = Progress.from_json(json.loads(text))
    recreated = set(start.recreated(other.ids))
    own = {place: at for place, at in start.offsets.items() if place[0] not in recreated and place not in other.gone}
    return replace(other, offsets={place: max(other.offsets.get(place, 0), own.get(place, 0))
                                   for place in sorted(other.offsets.keys() | own.keys())})
