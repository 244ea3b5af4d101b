"""What applications say about groups: their own assignors, and patterns of topics.

Threads: the application's. Never: knows a consumer or a configuration (config/ reads assignors from one).
"""
