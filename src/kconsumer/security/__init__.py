"""Where a consumer's tokens come from while it runs. What TLS's and SASL's properties must be is in config/.

Threads: see each module. Never: reads a property's text, knows more of the consumer than its core.
"""
