"""Exit codes of the command that click does not define.

Owns: SIGINT_EXIT. Threads: any (constants). Never: exits the process.
"""

SIGINT_EXIT = 130  # ended by Ctrl-C: 128 and the signal's number, as shells report them
