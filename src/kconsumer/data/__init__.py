"""The plain data that the API takes and returns, in the form of confluent_kafka's classes.

Threads: any (not locked). Never: knows a consumer, asks a broker.
"""
