# RequestManagers: the managers of a consumer, in the order in which N polls them. thread: N; A makes it.


cdef class RequestManagers(RequestManager):
    cdef vector[void*] managers  # thread: N (no references: ConsumerParts keeps them)
