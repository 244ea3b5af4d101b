# Between C++ strings and Python's: UTF-8, and bytes that are none survive as surrogates. thread: A.
from kconsumer._core.base.cpp cimport string
from kconsumer._core.base.printable cimport printable


cdef inline string utf8(str text):
    cdef bytes raw = text.encode("utf-8", "surrogateescape")
    return string(<const char*>raw, <size_t>len(raw))


cdef inline str text_of(const string& raw):
    return raw.data()[:raw.size()].decode("utf-8", "surrogateescape")


cdef inline str message_of(const string& detail):
    """What an error or a log line says: words of brokers are in it, so nothing in it steers a terminal."""
    cdef string text = printable(detail)
    return text.data()[:text.size()].decode()
