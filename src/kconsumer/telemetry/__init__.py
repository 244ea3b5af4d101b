"""The metrics of the consumers of this process, and their exporters.

Threads: any. Never: counts (the core does), imports the library of an exporter by itself.
"""
