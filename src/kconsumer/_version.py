"""The package's version, apart from everything that needs it."""

__version__ = "0.1.0"
