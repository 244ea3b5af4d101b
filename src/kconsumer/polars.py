"""Topics as lazy frames of polars: ``kconsumer.polars.scan_kafka``.

Owns: scan_kafka, and the translation of a query's filters into offsets. Threads: polars' threads. Never: replaces a
filter by offsets: polars applies all filters to the rows.
"""

from __future__ import annotations

import importlib
import json
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kconsumer.scanning.bounds import Limits
from kconsumer.scanning.topic_scan import TopicScan, scan

if TYPE_CHECKING:
    import polars

_MS: Final = {"Milliseconds": 1, "Microseconds": 1_000, "Nanoseconds": 1_000_000}
_FLIPPED: Final = {"Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq", "Eq": "Eq"}


def scan_kafka(
    config: Mapping[str, Any], topic: str, *, value: Any = None, key: Any = None,
    metadata: Iterable[str] = ("partition", "offset", "timestamp"), **options: Any,
) -> polars.LazyFrame:
    """Return a topic as a polars.LazyFrame. Each collect() reads the topic.

    Only the columns that a query needs are decoded. Filters that all rows must pass decide which offsets are read:
    ``partition`` equal to a number, ``offset`` compared with one, ``timestamp`` from a time on. Only the columns in
    `metadata` do: a field of the value with such a name limits nothing.

    Args:
        config, topic, value, key: as for ``kconsumer.scan``.
        metadata: columns of the records before the decoded ones; ignored without a decoder: all columns are there.
        options: the other arguments of ``kconsumer.scan``.

    Raises:
        ImportError: polars is not installed.
        TypeError, ValueError: an argument is invalid.
    """
    try:
        pl = importlib.import_module("polars")
        register = importlib.import_module("polars.io.plugins").register_io_source
    except ImportError as error:
        raise ImportError(f"scan_kafka() needs polars ({error}): pip install polars", name="polars") from error
    decoded = value is not None or key is not None
    own = tuple(metadata) if decoded else None
    whole = scan(config, topic, value=value, key=key, metadata=own or (), **options)
    limiting = frozenset(_LIMITS if own is None else own)  # a field of the value may have the name of such a column

    def frame(made: Any) -> polars.DataFrame:
        found: polars.DataFrame = pl.DataFrame(made)
        return found

    def schema() -> Any:
        return pl.DataFrame(whole.empty()).schema

    def read(with_columns: list[str] | None, predicate: Any, n_rows: int | None,
             batch_size: int | None) -> Iterator[polars.DataFrame]:
        needed = None if with_columns is None else [*with_columns]
        if needed is not None and predicate is not None:
            needed += [name for name in predicate.meta.root_names() if name not in needed]
        part = _narrowed(whole, own, needed, Limits() if predicate is None else limits_of(predicate, limiting))
        left = n_rows
        for made in part.batches() if left is None or left > 0 else ():
            found = frame(made)
            if left is not None:
                found = found.head(left)
                left -= found.height
            if predicate is not None:
                found = found.filter(predicate)
            yield found if with_columns is None else found.select(with_columns)
            if left == 0:
                return

    lazy: polars.LazyFrame = register(read, schema=schema, explain_name="kconsumer", explain_detail=topic)
    return lazy


def _narrowed(whole: TopicScan, own: tuple[str, ...] | None, needed: list[str] | None, limits: Limits) -> TopicScan:
    """Return the scan that a query needs.

    `own` are the records' columns beside decoded ones; None without a decoder.
    """
    if needed is None:
        return whole.narrowed(limits, whole.columns, own or ())
    if own is None:
        return whole.narrowed(limits, tuple(needed) or ("partition",), ())
    kept = tuple(name for name in own if name in needed)
    fields = tuple(name for name in needed if name not in own)
    if not fields:
        return whole.without_decoders(limits, kept or ("partition",))
    if not whole.flattened or "key" in fields or whole.decoders[0] is None:
        return whole.narrowed(limits, whole.columns, kept)
    return whole.without_key().narrowed(limits, fields, kept)


# ---- filters

def limits_of(predicate: Any, names: Collection[str]) -> Limits:
    """Return the bounds that a filter implies for all its rows. Unknown expressions imply no bounds.

    Args:
        predicate: a polars expression.
        names: the scan's columns that are the records' own: other columns of these names are fields of the value.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = json.loads(predicate.meta.serialize(format="json"))
    except Exception:  # without JSON from polars, filters apply only to the rows
        return Limits()
    limits = Limits()
    for term in _terms(tree):
        limits = _limited(limits, term, names)
    return limits


def _terms(tree: Any) -> Iterator[Any]:
    """Yield the terms of a conjunction."""
    inner = tree.get("BinaryExpr") if isinstance(tree, dict) else None
    if isinstance(inner, dict) and inner.get("op") == "And":
        yield from _terms(inner["left"])
        yield from _terms(inner["right"])
    else:
        yield tree


def _limited(limits: Limits, term: Any, names: Collection[str]) -> Limits:
    inner = term.get("BinaryExpr") if isinstance(term, dict) else None
    if not isinstance(inner, dict):
        return limits
    left, op, right = inner.get("left"), inner.get("op"), inner.get("right")
    if not (isinstance(left, dict) and "Column" in left):
        left, op, right = right, _FLIPPED.get(str(op)), left
    name = left.get("Column") if isinstance(left, dict) else None
    limit = _LIMITS.get(str(name)) if name in names else None
    return limits if limit is None or op not in _FLIPPED else limit(limits, str(op), right)


def _of_partition(limits: Limits, op: str, literal: Any) -> Limits:
    number = _integer(literal)
    if number is None or op != "Eq":
        return limits
    chosen = frozenset([number])
    return replace(limits, partitions=chosen if limits.partitions is None else chosen & limits.partitions)


def _of_offset(limits: Limits, op: str, literal: Any) -> Limits:
    number = _integer(literal)
    if number is None:
        return limits
    least = {"Eq": number, "GtEq": number, "Gt": number + 1}.get(op, limits.least)
    most = {"Eq": number, "LtEq": number, "Lt": number - 1}.get(op, limits.most)
    return replace(limits, least=max(limits.least, least), most=min(limits.most, most))


def _of_time(limits: Limits, op: str, literal: Any) -> Limits:
    """Use only lower time bounds: later records may have earlier timestamps."""
    ms = _milliseconds(literal)
    if ms is None or op not in ("Eq", "GtEq", "Gt"):
        return limits
    return replace(limits, time_ms=max(ms, limits.time_ms or 0))


_LIMITS: Final[dict[str, Callable[[Limits, str, Any], Limits]]] = {
    "partition": _of_partition, "offset": _of_offset, "timestamp": _of_time}


def _value(literal: Any) -> Any:
    """Return the value of a literal: {"Int64": 3} for {"Literal": {"Scalar": {"Int64": 3}}}."""
    for name in ("Literal",):
        literal = literal.get(name) if isinstance(literal, dict) else None
    if isinstance(literal, dict) and len(literal) == 1 and next(iter(literal)) in ("Scalar", "Dyn"):
        literal = next(iter(literal.values()))
    return literal


def _integer(literal: Any) -> int | None:
    held = _value(literal)
    if not isinstance(held, dict) or len(held) != 1:
        return None
    name, number = next(iter(held.items()))
    is_number = isinstance(number, int) and not isinstance(number, bool)
    return number if is_number and name.startswith(("Int", "UInt")) else None


def _milliseconds(literal: Any) -> int | None:
    """Return a point in time in ms, rounded down."""
    if isinstance(literal, dict) and isinstance(literal.get("Cast"), dict):
        literal = literal["Cast"].get("expr")
    held = _value(literal)
    parts = held.get("Datetime") if isinstance(held, dict) else None
    if not isinstance(parts, list) or len(parts) != 3 or parts[1] not in _MS or parts[2] is None:
        return None
    return int(parts[0]) // _MS[parts[1]] if isinstance(parts[0], int) else None
