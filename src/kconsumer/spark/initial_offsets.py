"""The start of a query of Spark's own source, which that source stores in a file of the checkpoint.

Owns: initial_offsets, located. Threads: the streaming driver's thread. Never: writes to the checkpoint.

Spark does not report the checkpoint to Python sources; the option ``checkpointLocation`` does.
"""

from __future__ import annotations

import json

from pyarrow import fs

from kconsumer.config.values import configuration_error
from kconsumer.ranges.offsets import Offsets, Progress

_HADOOP_S3 = ("s3a", "s3n")


def initial_offsets(checkpoint: str, like: Offsets) -> Offsets | None:
    """Return the offsets in ``sources/*/0`` of a checkpoint.

    Args:
        checkpoint: a path or URI, as in the writer's option ``checkpointLocation``.
        like: offsets of the same query; its topics identify the source among several.

    Returns:
        None if no source of the checkpoint has such a file.

    Raises:
        ConfigurationError: the checkpoint is unreadable, or two of its sources read these topics from other offsets.
    """
    topics = {topic for topic, _ in like}
    found = [offsets for offsets in map(_offsets, _files(checkpoint)) if topics & {topic for topic, _ in offsets}]
    if any(offsets != found[0] for offsets in found):
        raise configuration_error(f"several sources of the checkpoint {checkpoint} read {', '.join(sorted(topics))} "
                                  "from different offsets: finish its first batch with Spark's source")
    return found[0] if found else None


def _files(checkpoint: str) -> list[bytes]:
    try:
        system, path = located(checkpoint)
        sources = system.get_file_info(fs.FileSelector(f"{path.rstrip('/')}/sources", allow_not_found=True))
        logs = system.get_file_info([f"{source.path}/0" for source in sources])
        found = []
        for log in logs:
            if log.type == fs.FileType.File:
                with system.open_input_stream(log.path) as stream:
                    found.append(stream.read())
    except (OSError, ValueError, ImportError) as error:
        raise configuration_error(f"cannot read the checkpoint of option checkpointLocation={checkpoint}: {error}; "
                                  "finish its first batch with Spark's source") from error
    return found


def located(checkpoint: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a checkpoint, and its path there.

    Raises:
        OSError, ValueError, ImportError: the file system is not available here.
    """
    scheme, colon, rest = checkpoint.partition(":")
    if not colon:
        return fs.LocalFileSystem(), checkpoint
    if scheme == "file":  # Hadoop's URIs have one slash or three
        return fs.LocalFileSystem(), "/" + rest.lstrip("/")
    system, path = fs.FileSystem.from_uri(f"s3:{rest}" if scheme in _HADOOP_S3 else checkpoint)
    return system, path


def _offsets(content: bytes) -> Offsets:
    """Parse ``\\0v1\\n{…}``, or only the JSON, the form of the oldest versions."""
    text = content.decode(errors="replace")
    try:
        return Progress.from_json(json.loads(text[text.index("{"):])).offsets
    except ValueError:
        return {}  # another kind of source


