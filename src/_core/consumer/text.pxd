# Between C++ strings and Python's: UTF-8; bytes that are not UTF-8 survive as surrogates. thread: A.
from kconsumer._core.base.cpp cimport string
from kconsumer._core.base.printable cimport printable


cdef inline string utf8(str text):
    cdef bytes raw = text.encode("utf-8", "surrogateescape")
    return string(<const char*>raw, <size_t>len(raw))


cdef inline str text_of(const string& raw):
    return raw.data()[:raw.size()].decode("utf-8", "surrogateescape")


cdef inline str message_of(const string& detail):
    """The text of an error or a log line: it may hold a broker's words, so control characters in it are escaped."""
    cdef string text = printable(detail)
    return text.data()[:text.size()].decode()
