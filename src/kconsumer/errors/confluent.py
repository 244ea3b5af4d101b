"""Lets objects of kconsumer also be objects of confluent_kafka's class with the same name, if a program imported it.

Owns: Shared, the base of such classes; SharedException and link(); theirs(). Threads: any (two threads may derive or
link a class twice; both are right). Never: imports confluent_kafka; changes its classes.

``except confluent_kafka.KafkaException`` matches by real bases only, and confluent_kafka's ``==`` raises for objects of
other classes. An exception class gets its second base when the first exception is created after the import of
confluent_kafka. The other objects of confluent_kafka are C structs, and Python refuses another layout for an existing
class. So such an object is created as an instance of a class derived from both.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, ClassVar

__all__ = ["Shared", "SharedException", "link", "theirs"]


def theirs(cls: Any) -> type | None:
    """Return confluent_kafka's class that corresponds to `cls`; None if that package is not imported."""
    module, name = cls._THEIRS
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) else None


def _derive(cls: Any, base: type) -> Any:
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__, "__slots__": ()}
    try:
        return type(cls)(cls.__name__, (cls, base), {**names, **cls._fields_of(base), "_public": cls})
    except TypeError:  # a subclass with __slots__, or with another metaclass, cannot have both bases
        return cls


class _Signature:
    """The signature of ``__init__``: inspect would show that of ``Shared.__new__``."""

    def __get__(self, _instance: object, cls: type) -> Any:
        import inspect

        whole = inspect.signature(cls.__init__)  # type: ignore[misc]
        return whole.replace(parameters=list(whole.parameters.values())[1:])


class Shared:
    """Base of classes whose objects also derive from confluent_kafka's class of that name, if it is imported."""

    __slots__ = ()

    _THEIRS: ClassVar[tuple[str, str]]  # module and name of confluent_kafka's class
    _public: ClassVar[type | None] = None  # of a derived class: the class that the program named
    _derived: ClassVar[type | None] = None  # of a class that the program named: its derived class

    __signature__ = _Signature()

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Any:
        made = cls._with_theirs()
        return super(Shared, made).__new__(made)

    @classmethod
    def _with_theirs(cls) -> Any:
        base = theirs(cls)
        if base is None or issubclass(cls, base):
            return cls
        derived = cls.__dict__.get("_derived")
        if derived is None:
            derived = cls._derived = _derive(cls, base)
        return derived

    @classmethod
    def _fields_of(cls, _base: type) -> dict[str, Any]:
        """Return attributes of a derived class that are stored in confluent_kafka's part of the object."""
        return {}

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse names that confluent_kafka's classes refuse too: without ``__slots__`` Python accepts each."""
        cls = type(self)
        if not (name[0] == "_" or hasattr(cls, name)) and (cls._public or cls).__module__.startswith("kconsumer."):
            raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")
        super().__setattr__(name, value)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the class that the program named: pickle cannot find a derived one."""
        found = super().__reduce_ex__(protocol)
        cls, public = type(self), type(self)._public
        if public is None or not isinstance(found, tuple):
            return found
        function, arguments, *rest = found
        return (public if function is cls else function, tuple(public if a is cls else a for a in arguments), *rest)


class SharedException(Exception):
    """Base of KafkaException, with the layout of confluent_kafka's: so the latter can replace it."""


_unlinked: list[Any] = []


def link(*classes: Any) -> None:
    """Add confluent_kafka's class to the bases of each of these, now or in a later call after its import.

    A class stays as it is if a program's class names confluent_kafka's base before ours: Python has no order for these.

    Args:
        classes: more exception classes with ``_THEIRS``, bases first; without an argument: those of earlier calls.
    """
    _unlinked.extend(classes)
    for cls in list(_unlinked):
        base = theirs(cls)
        if base is not None:
            _unlinked.remove(cls)
            with contextlib.suppress(TypeError):
                cls.__bases__ = (*(b for b in cls.__bases__ if b is not SharedException), base)
