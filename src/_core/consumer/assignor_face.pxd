# Converts the questions and answers of an AssignorCall to plain tuples. thread: A.


cdef list texts(const vector[string]& raw)
cdef list member_tuples(const AssignorCall* call)
cdef list topic_tuples(const AssignorCall* call)
cdef object bytes_of(const NullableString& data)
cdef int put_assignments(AssignorAnswerEvent* answer, found) except -1
cdef int put_user_data(AssignorAnswerEvent* answer, found) except -1
