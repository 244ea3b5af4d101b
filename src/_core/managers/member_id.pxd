# Declares managers/member_id.hpp for Cython. thread: any.
from kconsumer._core.base.cpp cimport string
from kconsumer._core.protocol.types cimport Uuid


cdef extern from "managers/member_id.hpp" namespace "kc" nogil:
    string uuid_text(const Uuid& id)
    string make_member_id()
