"""Ranges of offsets: which there are, what is read of them, and reading one; without Spark.

Owns: nothing itself. Threads: see each module. Never: imports PySpark.
"""
