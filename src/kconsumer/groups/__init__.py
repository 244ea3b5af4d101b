"""Assignors of applications, and topic patterns.

Threads: the application thread. Never: uses a consumer or reads a configuration (config/ does).
"""
