"""``python -m kconsumer``: the command `kconsumer`.

Owns: nothing. Threads: the main thread. Never: runs on import.
"""

from kconsumer.cli import main

if __name__ == "__main__":
    main()
