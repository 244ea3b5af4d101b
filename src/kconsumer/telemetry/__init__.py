"""The metrics of a consumer.

Threads: any. Never: holds a value (the core counts).
"""
