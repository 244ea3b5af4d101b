# Declares network/socket.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport int32_t, string
from kconsumer._core.network.request cimport Channel, NetworkConfig


cdef extern from "network/socket.hpp" namespace "kc" nogil:
    cdef cppclass SocketAddress:
        SocketAddress()
        int family()
        bint operator==(const SocketAddress&)
        string text()

    string describe(const char* fmt, ...)
    string host_and_port(const string& host, int32_t port)
    string error_text(int error)
    string last_error()
    void reset_on_close(int fd)
    bint is_unreachable(int error)
    bint path_may_be_dead(int fd)
    int open_socket(int family, const NetworkConfig& config, Channel channel)
    int start_connect(int fd, const SocketAddress& address)
    int finish_connect(int fd)
