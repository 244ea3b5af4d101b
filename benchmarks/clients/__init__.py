"""The measured programs: each runs in a separate process and prints one JSON line; see measure.py."""
