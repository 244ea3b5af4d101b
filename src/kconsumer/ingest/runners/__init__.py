"""Runners of the tasks of a trigger: processes of this machine, or Spark.

Owns: nothing itself. Threads: the driver's. Never: commits.
"""
