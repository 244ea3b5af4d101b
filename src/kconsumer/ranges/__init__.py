"""Ranges of offsets: finding, planning and reading them, without Spark.

Owns: nothing (see the modules). Threads: see each module. Never: imports PySpark.
"""
