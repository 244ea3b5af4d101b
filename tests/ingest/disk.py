"""Disk: a file system in a file, whose power can be cut.

Owns: the loop device. Threads: the test's. Never: writes to a file system that it has not made.

After the ioctl EXT4_IOC_SHUTDOWN, ext4 writes nothing: neither its journal nor data that was not synchronized. Mounting
again repeats what is in the journal, as after a power failure.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
from pathlib import Path

_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
_NO_LOG_FLUSH = 2


class Disk:
    """A mounted ext4; a context manager. Only root can mount.

    Args:
        folder: for the image and the mount point.
        size: in MiB.
    """

    def __init__(self, folder: Path, size: int = 256) -> None:
        self._image = folder / "disk.img"
        self.path = folder / "disk"
        self.path.mkdir()
        with self._image.open("wb") as image:
            image.truncate(size << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(self._image)], check=True, capture_output=True)

    def __enter__(self) -> Disk:
        self._mount()
        return self

    def __exit__(self, *_: object) -> None:
        # Also where a failed test has files open: a mounted folder could not be removed.
        subprocess.run(["umount", "--lazy", str(self.path)], check=True, capture_output=True)

    def cut_power(self) -> None:
        """From now on, writes fail, and what was not synchronized is lost."""
        found = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(found, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(found)

    def restart(self) -> None:
        """Mount the file system again. No process may have a file of it open."""
        subprocess.run(["umount", str(self.path)], check=True, capture_output=True)
        self._mount()

    def _mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", str(self._image), str(self.path)], check=True, capture_output=True)


def why_not(folder: Path) -> str | None:
    """Return why there can be no Disk here; None: there can."""
    try:
        folder.mkdir()
        with Disk(folder, 8) as disk:
            disk.cut_power()
    except FileNotFoundError as error:
        return f"no command {error.filename}"
    except subprocess.CalledProcessError as error:
        return f"{error.cmd[0]}: {error.stderr.decode().strip()}"
    except OSError as error:
        return f"EXT4_IOC_SHUTDOWN: {error}"
    return None
