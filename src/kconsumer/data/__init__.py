"""The plain data classes of the API, compatible with confluent_kafka's classes.

Threads: any (not locked). Never: uses a consumer, sends requests.
"""
