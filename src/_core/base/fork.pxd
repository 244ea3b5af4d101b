# How many forks lie between this process and the first one (0 there). thread: any (written only in a new child).
#
# One variable, in base/fork.pyx: extension modules share no symbols, and a counter in a header would be a copy in each
# module that includes it, and only the registered copy would count.
cdef volatile unsigned long fork_count
