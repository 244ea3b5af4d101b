"""Lets a program written for confluent_kafka run with kconsumer's consumers, without a changed line.

Owns: install, uninstall and Installed; the names in confluent_kafka's modules that they replace. Threads: one. Never:
replaces a name in a module outside confluent_kafka; changes a class.

    python -m kconsumer.compat SCRIPT [ARGS]
    python -m kconsumer.compat -m MODULE [ARGS]
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

from kconsumer.aio import AIOConsumer
from kconsumer.consumer import Consumer, DeserializingConsumer

__all__ = ["Installed", "install", "uninstall"]

_PACKAGE: Final = "confluent_kafka"
# Our classes, with the modules of confluent_kafka that have a class of the same name. Older versions have no aio.
_PLACES: Final[dict[type, tuple[str, ...]]] = {
    Consumer: (_PACKAGE, f"{_PACKAGE}.cimpl"),
    DeserializingConsumer: (_PACKAGE, f"{_PACKAGE}.deserializing_consumer"),
    AIOConsumer: (f"{_PACKAGE}.aio", f"{_PACKAGE}.aio._AIOConsumer"),
}
_replaced: list[tuple[ModuleType, type, type]] = []  # in which module, our class, and confluent_kafka's


class Installed:
    """The state after ``install()``. As a context manager it ends with ``uninstall()``."""

    def __init__(self, kept: tuple[str, ...]) -> None:
        self.kept = kept  #: names outside confluent_kafka that still have its classes: ``module.name``, sorted

    def __enter__(self) -> Installed:
        return self

    def __exit__(self, *_exception: object) -> None:
        uninstall()


def install(*, force: bool = False) -> Installed:
    """Replace Consumer, DeserializingConsumer and aio.AIOConsumer in confluent_kafka by kconsumer's.

    Call it before the program imports confluent_kafka's classes. A second call changes nothing.

    Args:
        force: continue if modules already have a class of confluent_kafka. They keep it.

    Returns:
        Installed: a context manager that undoes the replacement; ``kept`` names the classes that stay in use.

    Raises:
        ImportError: confluent_kafka is not installed.
        RuntimeError: modules already have a class of confluent_kafka, or a subclass; the message names them.
    """
    found = list(_found())
    kept = tuple(sorted(set(_kept(tuple({theirs for _, _, theirs in found})))))
    if kept and not force:
        raise RuntimeError(f"confluent_kafka's consumers are already in use: {', '.join(kept)}: call "
                           "kconsumer.compat.install() before these are imported, or with force=True to leave them")
    for module, ours, _ in found:
        setattr(module, ours.__name__, ours)
    _replaced.extend(found)
    return Installed(kept)


def uninstall() -> None:
    """Give confluent_kafka its classes back. Does nothing without ``install()``.

    Existing consumers stay in use. A name that another package has replaced since then stays as it is.
    """
    while _replaced:
        module, ours, theirs = _replaced.pop()
        if getattr(module, ours.__name__) is ours:
            setattr(module, ours.__name__, theirs)


def _found() -> Iterator[tuple[ModuleType, type, type]]:
    """Find confluent_kafka's classes that are not replaced yet: the module, our class, and confluent_kafka's."""
    for ours, places in _PLACES.items():
        for place in places:
            try:
                module = importlib.import_module(place)
            except ModuleNotFoundError as error:
                if error.name != place or place == _PACKAGE:
                    raise
                break
            theirs = getattr(module, ours.__name__)
            if theirs is not ours:
                yield module, ours, theirs


def _kept(classes: tuple[type, ...]) -> Iterator[str]:
    """Find names outside confluent_kafka for one of these classes, and subclasses."""
    for module_name, module in list(sys.modules.items()):
        if not _is_theirs(module_name):
            for name, value in list(getattr(module, "__dict__", {}).items()):
                if issubclass(type(value), type) and issubclass(value, classes):
                    yield f"{module_name}.{name}"
    waiting: list[Any] = list(classes)
    while waiting:
        for cls in type.__subclasses__(waiting.pop()):
            waiting.append(cls)
            if not _is_theirs(cls.__module__):
                yield f"{cls.__module__}.{cls.__qualname__}"


def _is_theirs(module_name: str) -> bool:
    return module_name.partition(".")[0] in (_PACKAGE, "cimpl")
