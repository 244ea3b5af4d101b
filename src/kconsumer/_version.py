"""The package's version, apart from everything that needs it."""

__version__ = "0.1.0"


def version() -> str:
    """The version of kconsumer, such as ``"1.2.3"``."""
    return __version__


def libversion() -> tuple[str, int]:
    """The version of the client library, in the form of confluent_kafka: (text, 0xMMmmrrff).

    There is no library below kconsumer: the version is its own.
    """
    major, minor, revision = (int(part) for part in __version__.partition("+")[0].split(".")[:3])
    return __version__, major << 24 | minor << 16 | revision << 8 | 0xFF
