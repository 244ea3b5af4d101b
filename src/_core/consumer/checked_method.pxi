"""Owns: checked_method, which gives a compiled method the signature of a function, for mocks made from its class.

thread: any. Never: adds to the time of a call through an instance.
"""

cdef extern from "consumer/checked_method.hpp" namespace "kc":
    object make "kc::checked_method" (object method, object face)


def checked_method(method, face):
    """Return a descriptor: instances call ``method``, a method of a compiled type; the class gives ``face``.

    Args:
        method: descriptor of a compiled method with optional keyword arguments.
        face: function with the same parameters and the same effect.
    """
    return make(method, face)
