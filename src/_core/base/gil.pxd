# Owns: GIL_DISABLED, whether the interpreter this is compiled for has no GIL. thread: any. Never: changes at run time:
# the branch that is not taken is not compiled.
#
# With a GIL, what happens between two releases of it is atomic for the other threads of the application. Without one
# that takes a lock: so in poll()'s fast path, and where a position is stored that a seek may be changing.
cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define KC_GIL_DISABLED 1
    #else
    #define KC_GIL_DISABLED 0
    #endif
    """
    const bint GIL_DISABLED "KC_GIL_DISABLED"
