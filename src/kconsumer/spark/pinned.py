"""The registry's schemas at the start of a streaming query, in its checkpoint, for all later runs.

Owns: the file kconsumer-schemas.json of a checkpoint. Threads: the driver's thread. Never: replaces the file.

Spark does not report the checkpoint to Python sources; the option ``checkpointLocation`` does.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from pyarrow import fs

from kconsumer.config.values import configuration_error
from kconsumer.decoding.registry import RegistrySchema
from kconsumer.spark.initial_offsets import located

_FILE: Final = "kconsumer-schemas.json"


def read_pinned(checkpoint: str) -> dict[str, RegistrySchema]:
    """Return the schemas by subject; empty if the checkpoint has none.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    try:
        system, path = located(checkpoint)
        at = f"{path.rstrip('/')}/{_FILE}"
        if system.get_file_info(at).type != fs.FileType.File:
            return {}
        with system.open_input_stream(at) as stream:
            found = json.loads(stream.read())
        return {subject: RegistrySchema(known["type"], known["text"], tuple((n, t) for n, t in known["references"]))
                for subject, known in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
        raise configuration_error(f"cannot read {_FILE} in the checkpoint {checkpoint}: {error}") from error


def write_pinned(checkpoint: str, newest: Mapping[str, RegistrySchema]) -> None:
    """Store the schemas.

    An existing file stays: this run or an earlier one has read it.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    if not newest:
        return
    try:
        system, path = located(checkpoint)
        folder = path.rstrip("/")
        if system.get_file_info(f"{folder}/{_FILE}").type == fs.FileType.File:
            return
        system.create_dir(folder, recursive=True)
        new = f"{folder}/.{_FILE}.{uuid.uuid4().hex}"
        with system.open_output_stream(new) as stream:
            stream.write(json.dumps({subject: asdict(schema) for subject, schema in newest.items()}).encode())
        system.move(new, f"{folder}/{_FILE}")
    except (OSError, ValueError, ImportError) as error:
        raise configuration_error(f"cannot write {_FILE} into the checkpoint {checkpoint}: {error}") from error
