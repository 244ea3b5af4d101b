"""Owns: histories of whole groups of consumers in virtual time, each decided by one seed, and what must hold in them.

Threads: the caller's one. Never: a socket, a sleep, a clock.
"""
