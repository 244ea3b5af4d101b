# Owns: GIL_DISABLED, true when compiled for an interpreter without a GIL.
# thread: any. Never: changes at run time; the compiler removes the other branch.
#
# With a GIL, the code between two releases of the GIL is atomic for the other threads of the application. Without a GIL
# it needs a lock: in the fast path of poll(), and when poll() stores a position that a seek may change.
cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define KC_GIL_DISABLED 1
    #else
    #define KC_GIL_DISABLED 0
    #endif
    """
    const bint GIL_DISABLED "KC_GIL_DISABLED"
