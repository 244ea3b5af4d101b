"""``python -m kconsumer``: the command `kconsumer`.

Owns: nothing. Threads: the main one. Never: does anything when it is imported under another name.
"""

from kconsumer.cli import main

if __name__ == "__main__":
    main()
