# Declares base/secret.hpp for Cython, and put_secret(), which copies a Python str into a Secret.
# thread: any (put_secret: any A).
from kconsumer._core.base.cpp cimport uint8_t


cdef extern from "openssl/crypto.h" nogil:
    void OPENSSL_cleanse(void* memory, size_t length)


cdef extern from "base/secret.hpp" namespace "kc" nogil:
    cdef cppclass Secret:
        Secret()
        Secret(const void* bytes, size_t length)
        const uint8_t* data()
        size_t size()
        void clear()
        void assign(const void* bytes, size_t length)


# Stores the encoded text in `to`, and wipes the bytes object that the encoding made.
cdef inline int put_secret(Secret* to, str text, str errors="strict") except -1:
    cdef bytes raw = text.encode("utf-8", errors)
    to.assign(<const char*>raw, <size_t>len(raw))
    if len(raw) > 1:  # Python shares one object for each shorter value: do not change it
        OPENSSL_cleanse(<char*>raw, <size_t>len(raw))
    return 0
