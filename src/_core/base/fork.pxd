# Counts the forks between the first process and this one (0 in the first). thread: any (written only in a new child).
#
# The variable is in base/fork.pyx, not in a header: extension modules share no symbols. With a counter in a header each
# module would have a copy, and the handler would increment only one of them.
cdef volatile unsigned long fork_count
