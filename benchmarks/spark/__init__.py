"""Spark's own Kafka source and kconsumer, paired: see __main__."""
