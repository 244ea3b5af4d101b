"""The partition transforms of Iceberg: the values of PyIceberg's own transforms, for every type."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from kconsumer.errors import ConfigurationError
from kconsumer.ingest.output import PartitionColumn
from kconsumer.ingest.transforms import Transform

pytest.importorskip("pyiceberg")
from pyiceberg import transforms, types

_ROWS = 300
_EPOCH = datetime(1970, 1, 1)
_WIDTHS = (1, 3, 16, 1000)


def _number(chance: random.Random, digits: int, scale: int) -> Decimal:
    """A decimal of so many digits; arithmetic would round it to 28."""
    return Decimal((chance.randrange(2), tuple(chance.randrange(10) for _ in range(digits)), -scale))


def _columns() -> dict[str, tuple[pa.Array, Any]]:
    chance = random.Random(7)
    times = [_EPOCH + timedelta(microseconds=chance.randrange(-10**16, 10**16)) for _ in range(_ROWS)]
    times += [_EPOCH, _EPOCH - timedelta(microseconds=1), datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)]
    texts = ["".join(chance.choice("abé€😀\0") for _ in range(chance.randrange(30))) for _ in range(_ROWS)]

    def integers(bits: int) -> list[int | None]:
        return [*(chance.randrange(-2**(bits - 1) + 1000, 2**(bits - 1)) for _ in range(_ROWS)), 0, -1, None]

    return {
        "small": (pa.array(integers(16), pa.int16()), types.IntegerType()),
        "int": (pa.array(integers(32), pa.int32()), types.IntegerType()),
        "long": (pa.array(integers(64), pa.int64()), types.LongType()),
        "decimal": (pa.array([*(_number(chance, 9, 2) for _ in range(_ROWS)), Decimal("0.00"), Decimal("-0.01"),
                              Decimal("1.28"), Decimal("-1.28"), None], pa.decimal128(11, 2)),
                    types.DecimalType(11, 2)),
        "wide": (pa.array([*(_number(chance, 37, 4) for _ in range(_ROWS)), None], pa.decimal128(38, 4)),
                 types.DecimalType(38, 4)),
        "text": (pa.array([*texts, "", None]), types.StringType()),
        "binary": (pa.array([*(text.encode() for text in texts), b"\xff" * 5, b"", None]), types.BinaryType()),
        "local": (pa.array([*times, None], pa.timestamp("us")), types.TimestampType()),
        "instant": (pa.array([*(time.replace(tzinfo=timezone.utc) for time in times), None],
                             pa.timestamp("us", "UTC")), types.TimestamptzType()),
        "date": (pa.array([*(time.date() for time in times), None]), types.DateType()),
        "double": (pa.array([0.5, None]), types.DoubleType()),
        "flag": (pa.array([True, None]), types.BooleanType()),
    }


COLUMNS = _columns()


def given(value: Any) -> Any:
    """A value as PyIceberg's transforms take it."""
    if isinstance(value, datetime):
        return (value.replace(tzinfo=None) - _EPOCH) // timedelta(microseconds=1)
    return (value - _EPOCH.date()).days if isinstance(value, date) else value


@pytest.mark.parametrize("name", ["year", "month", "day", "hour", "bucket", "truncate"])
@pytest.mark.parametrize("kind", COLUMNS)
def test_the_values_match_pyiceberg(kind: str, name: str):
    column, type_ = COLUMNS[kind]
    for width in _WIDTHS if name in ("bucket", "truncate") else (0,):
        ours = Transform(name, width)
        theirs = transforms.parse_transform(str(ours))
        assert ours.takes(column.type) == theirs.can_transform(type_)
        if ours.takes(column.type):
            apply = theirs.transform(type_)
            for rows in (column, column.slice(11), column.slice(0, 0)):
                found = ours.apply(rows)
                assert found.type == ours.type(column.type)
                assert found.to_pylist() == [apply(given(value)) for value in rows.to_pylist()]


@pytest.mark.parametrize(("text", "name", "transform"), [
    ("month(ts)", "ts_month", "month"), ("to_date(ts)", "ts_day", "day"), ("day = date( value.ts )", "day", "day"),
    ("Bucket(16, id)", "id_bucket_16", "bucket[16]"), ("x=truncate(4,id)", "x", "truncate[4]"),
    ("hour(ts)", "ts_hour", "hour"), ("id", "id", None)])
def test_the_text_of_a_partition(text: str, name: str, transform: str | None):
    found = PartitionColumn.parse(text, hidden=True)
    assert found.name == name
    assert (None if found.transform is None else str(found.transform)) == transform


@pytest.mark.parametrize("text", ["x=minute(ts)", "x=bucket(ts)", "x=month(2, ts)", "x=bucket(0, id)",
                                  "x=bucket(n, id)"])
def test_expressions_that_iceberg_lacks(text: str):
    with pytest.raises(ConfigurationError, match="expected year, month, day or hour of a column, bucket"):
        PartitionColumn.parse(text, hidden=True)


@pytest.mark.parametrize("text", ["x=bucket(16, id)", "x=truncate(4, id)", "x=year(2, ts)"])
def test_other_formats_have_no_transforms(text: str):
    with pytest.raises(ConfigurationError, match="expected one of to_date, date, year"):
        PartitionColumn.parse(text)
    with pytest.raises(ConfigurationError, match="invalid partition name"):
        PartitionColumn.parse(text.partition("=")[2])
