"""Custom assignors of applications, and patterns of topics.

Threads: the application's. Never: knows a consumer or a configuration (config/ reads assignors from one).
"""
