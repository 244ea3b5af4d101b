"""The sources of a running consumer's tokens. config/ checks the TLS and SASL properties.

Threads: see each module. Never: reads the text of a property; uses more of the consumer than its core.
"""
