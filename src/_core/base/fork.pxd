# How often this process is a fork: 0 where it began, one more in each child. thread: any (written in a new child only).
#
# One variable, in base/fork.pyx: extension modules share no symbols, and a counter in a header would be a copy in each
# module that includes it, which only counts where somebody has registered it.
cdef volatile unsigned long fork_count
