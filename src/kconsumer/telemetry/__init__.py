"""What a consumer measures of itself.

Threads: any. Never: holds a value: the core counts.
"""
