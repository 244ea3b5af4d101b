# Converts C++ strings and Python strings: UTF-8; bytes that are not UTF-8 become surrogates. thread: A.
from kconsumer._core.base.cpp cimport string
from kconsumer._core.base.printable cimport printable


cdef inline string utf8(str text):
    cdef bytes raw = text.encode("utf-8", "surrogateescape")
    return string(<const char*>raw, <size_t>len(raw))


cdef inline str text_of(const string& raw):
    return raw.data()[:raw.size()].decode("utf-8", "surrogateescape")


cdef inline str message_of(const string& detail):
    """Return an error or log text with escaped control characters; a broker may have sent it."""
    cdef string text = printable(detail)
    return text.data()[:text.size()].decode()
