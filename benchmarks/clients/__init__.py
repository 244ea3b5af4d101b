"""The programs that are measured: each runs in a process of its own and prints one JSON line; see measure.py."""
