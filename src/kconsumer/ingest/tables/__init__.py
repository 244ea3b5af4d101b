"""The tables that an ingestion writes to. Each stores the offsets of its jobs.

Owns: nothing (see the modules). Threads: the driver's thread. Never: reads from Kafka.
"""
