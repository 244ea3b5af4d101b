"""The package's version, in a module without imports."""

__version__ = "0.1.0"


def version() -> str:
    """Return the version of kconsumer, such as ``"1.2.3"``."""
    return __version__


def libversion() -> tuple[str, int]:
    """Return the version of the client library as confluent_kafka: (text, 0xMMmmrrff).

    kconsumer has no separate client library: this is its own version.
    """
    major, minor, revision = (int(part) for part in __version__.partition("+")[0].split(".")[:3])
    return __version__, major << 24 | minor << 16 | revision << 8 | 0xFF
