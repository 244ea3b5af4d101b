"""The tables that an ingestion writes to; each keeps the offsets of its jobs.

Owns: nothing itself. Threads: the driver's. Never: reads from Kafka.
"""
