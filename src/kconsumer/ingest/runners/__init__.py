"""Runners of the tasks of a trigger: processes on this machine, or Spark.

Owns: nothing (see the modules). Threads: the driver's thread. Never: commits.
"""
