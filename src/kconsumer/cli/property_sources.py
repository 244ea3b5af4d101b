"""The sources of a command's properties: files, the environment, arguments; and how to hide secrets.

Owns: the options -b, -F and -X, their order of precedence, the checks of files with secrets. Threads: the main thread.
Never: checks a value (kconsumer.config does), puts a secret into a message.

Every user of the machine can see the arguments of a process, so a secret there causes a warning. Files belong to their
owner, and only the user of a process can read its environment.
"""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import click

from kconsumer.cli.properties_file import PropertiesError, read_entries
from kconsumer.cli.terminal import warn
from kconsumer.config import unknown_property
from kconsumer.config.properties import BY_NAME, PROPERTIES
from kconsumer.config.property import Kind, Property

PROPERTIES_PAGE: Final = "Configuration at https://kconsumer.github.io/kconsumer/"
_PREFIX: Final = "KCONSUMER_"
_SIMILAR: Final = 0.8  # of two names, as difflib measures it
_BROKERS: Final = "bootstrap.servers"
_CALLABLES: Final = (Kind.CALLABLE, Kind.LOGGER, Kind.TOPIC_CONFIG)
# Set by a command itself: -X changes these, but a file, which applications may share, does not.
_OURS: Final = frozenset({
    "auto.offset.reset", "auto.commit.interval.ms", "enable.auto.commit", "enable.auto.offset.store",
    "enable.partition.eof", "key.deserializer", "value.deserializer", "key.serializer", "value.serializer",
    "interceptor.classes",
})
# By the name of an environment variable, without properties whose names have no dot: too many variables have these
# names.
_VARIABLES: Final = {
    _PREFIX + name.replace(".", "_").upper(): name
    for prop in PROPERTIES if prop.kind not in _CALLABLES
    for name in (prop.name, *(alias.name for alias in prop.aliases)) if "." in name
}


def connection(*names: str, help: str,
               brokers_required: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options -b, -F and -X to a command.

    It is called with ``properties``, a dict with ``bootstrap.servers``.

    Args:
        names: names of -X.
        help: help text of -X.
        brokers_required: False: without -b the dict is empty, whatever the environment has.
    """

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @click.option("-b", "--bootstrap-servers", metavar="HOST:PORT,…", help="Initial brokers.")
        @click.option("-F", "--config", "files", multiple=True, metavar="FILE", type=click.Path(path_type=Path),
                      help="A properties file, also one of the Java client; may be repeated.")
        @click.option(*names, "given", multiple=True, metavar="PROPERTY=VALUE", callback=read_pairs, help=help)
        @functools.wraps(command)
        def run(*arguments: Any, bootstrap_servers: str | None, files: Sequence[Path], given: dict[str, str],
                **more: Any) -> None:
            if bootstrap_servers is not None:
                given = {**given, _BROKERS: bootstrap_servers}
            elif not brokers_required:
                if files or given:
                    raise click.UsageError("-F and -X need a cluster: set -b/--bootstrap-servers HOST:PORT")
                return command(*arguments, properties={}, **more)
            return command(*arguments, properties=gathered(files, os.environ, given), **more)

        return run

    return add


def read_pairs(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    """Parse NAME=VALUE options."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{name!r} is not {param.metavar}", ctx, param)
        found[name.strip()] = value
    return found


def gathered(files: Sequence[Path], environment: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Collect all properties: of the files in order, the environment, the arguments.

    Later ones win.

    Raises:
        click.UsageError: a file is unusable, or there are no brokers.
    """
    found: dict[str, str] = {}
    for path in files:
        _merge(found, _of_file(path))
    _warn_about_misspelt(environment)
    _merge(found, {name: environment[variable] for variable, name in _VARIABLES.items()
                   if environment.get(variable) and _canonical(name) not in _OURS})
    _merge(found, {name: _given(name, value) for name, value in given.items()})
    if not found.get(_BROKERS) and not found.get("metadata.broker.list"):
        raise click.UsageError("no brokers: set -b/--bootstrap-servers HOST:PORT, KCONSUMER_BOOTSTRAP_SERVERS, or "
                               "-F FILE with bootstrap.servers in the file")
    return found


def _warn_about_misspelt(environment: Mapping[str, str]) -> None:
    """Warn about variables whose names are almost those of properties.

    Other variables with the prefix belong to other programs, such as Kubernetes for a service with this name.
    """
    for variable in sorted(environment):
        if variable.startswith(_PREFIX) and variable not in _VARIABLES and environment[variable]:
            names = {known.removeprefix(_PREFIX): known for known in _VARIABLES}  # the prefix makes all names similar
            near = get_close_matches(variable.removeprefix(_PREFIX), names, n=1, cutoff=_SIMILAR)
            if near:
                warn(f"ignoring {variable}: no property has this name: did you mean {names[near[0]]!r}?")


def _property(name: str) -> Property | None:
    found = BY_NAME.get(name) or BY_NAME.get(name.removeprefix("topic."))
    return None if found is None else found[0]


def _canonical(name: str) -> str:
    prop = _property(name)
    return name if prop is None else prop.name


def _secret(name: str) -> bool:
    prop = _property(name)
    return prop is not None and prop.secret


def _merge(found: dict[str, str], more: Mapping[str, str]) -> None:
    """Merge two sources. A property may have different names in them."""
    canonical = {_canonical(name) for name in more}
    for name in [name for name in found if _canonical(name) in canonical]:
        del found[name]
    found.update(more)


def _of_file(path: Path) -> dict[str, str]:
    text, permissions = _read(path)
    try:
        entries = read_entries(text)
    except PropertiesError as error:
        raise click.UsageError(f"{path}: {error}") from None
    found: dict[str, str] = {}
    for entry in entries:
        if _canonical(entry.name) in _OURS:
            continue
        if _property(entry.name) is None:
            raise click.UsageError(f"{path}: line {entry.line}: {unknown_property(entry.name)} (see {PROPERTIES_PAGE})")
        _merge(found, {entry.name: entry.value})
    secrets = [name for name in found if _secret(name)]
    if secrets:
        _check_permissions(path, permissions, secrets[0])
    return found


def _given(name: str, value: str) -> str:
    """Return the value of an argument. A secret may be @FILE; @@ stands for a leading @."""
    if not _secret(name) or not value:
        return value
    if value.startswith("@") and not value.startswith("@@"):
        path = Path(value[1:])
        text, permissions = _read(path)
        _check_permissions(path, permissions, name)
        return text.removesuffix("\n").removesuffix("\r")
    warn(f"every user of this machine can read {name} in the list of processes: use -X {name}=@FILE, -F FILE, or "
         f"{_PREFIX}{name.replace('.', '_').upper()} in the environment")
    return value.removeprefix("@")


def _read(path: Path) -> tuple[str, int | None]:
    """Return a file's text, and its permissions if it is a regular file (not a pipe)."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            data = file.read()
        return data.decode("utf-8-sig"), stat.S_IMODE(status.st_mode) if stat.S_ISREG(status.st_mode) else None
    except OSError as error:
        raise click.UsageError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"cannot read {path}: it is not UTF-8: write other characters as \\uXXXX "
                               "in a file of properties") from None


def _check_permissions(path: Path, permissions: int | None, name: str) -> None:
    """Check the permissions of a file with a secret.

    Readable by others: a warning, because secrets that Kubernetes mounts are. Writable by others: refused, because a
    user with write access chooses the brokers that receive the secret.
    """
    if permissions is None:
        return
    remedy = f"(mode {permissions:03o}): chmod 600 {path}"
    if permissions & stat.S_IWOTH:
        raise click.UsageError(f"{path} has {name}, and every user of this machine can write it {remedy}")
    if permissions & (stat.S_IRGRP | stat.S_IROTH):
        readers = "every user of this machine" if permissions & stat.S_IROTH else "its group"
        warn(f"{path} has {name}, and {readers} can read it {remedy}")
