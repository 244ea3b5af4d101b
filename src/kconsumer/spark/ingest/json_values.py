"""JSON values as records: Spark's from_json, and a check for everything that from_json loses without an error.

Owns: with_json(), and which JSON is a bad record. Threads: the driver's, which builds expressions only. Never: reads a
record.

from_json stops after the first value, takes the last of equal keys, replaces a lone surrogate by ?, rounds decimals and
turns a number beyond a FLOAT or DOUBLE into Infinity. Spark's parser of VARIANT refuses most of this and keeps decimals
exact. Both read each value, and the fields that from_json may have changed are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CORRUPT: Final = "_kconsumer_corrupt"  #: the field of the decoded struct that says whether it fits the schema
_VARIANT: Final = "_kconsumer_variant"
_EXACT: Final = "_kconsumer_exact"
_STRICT: Final = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
_OPTIONS: Final = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, "enableDateTimeParsingFallback": "false",
                   **_STRICT}
_BLANK: Final = " \t\r\n"
_INFINITY: Final = float("inf")

_INTEGER: Final = r"^-?\d+$"
_NUMBER: Final = r"^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$"
_FRACTION: Final = r"\.(\d*?)0*(?:$|[eE])"
_TIME_ONLY: Final = r"^[\x00-\x20]*T?\d{1,2}:"
_WIDE: Final = "decimal(38,19)"
# VARIANT keeps a number with an exponent, or with more than 38 digits, as a double. In these texts that may have cost
# digits, or the value as a whole.
_SHORTENED: Final = r"(?:\d\.?){16,}[eE]|(?:\d\.?){39}"
_EXTREME: Final = r"\d[eE][-+]?\d{3}|\d{300}"


def with_json(frame: DataFrame, text: Column, schema: StructType, decoded: str) -> tuple[DataFrame, Column]:
    """The frame with the record in the column `decoded`, and the reason why a value is bad (null where it is not).

    Args:
        frame: what `text` is a column of.
        text: the value as a string.
        schema: of the record.
        decoded: the name of the new column.
    """
    # A text cannot contain its own hash. After a second value, or a bracket that closes ours, the hash is out of place.
    enclosed = f.concat(f.lit("["), text, f.lit(","), f.xxhash64(text), f.lit("]"))
    record = StructType([*schema.fields, StructField(CORRUPT, StringType())])
    compared = StructType([item for item in schema.fields if _is_compared(item.dataType)])
    found = frame.withColumn(_VARIANT, f.try_parse_json(enclosed))
    found = found.withColumn(decoded, f.from_json(text, record, _OPTIONS))
    if compared.fields:
        found = found.withColumn(_EXACT, f.try_variant_get(_VARIANT, "$[0]", _with_variants(compared)))
    return found, _reason(text, enclosed, schema, decoded)


def _reason(text: Column, enclosed: Column, schema: StructType, decoded: str) -> Column:
    trimmed = f.trim(text, f.lit(_BLANK))
    is_object = f.startswith(trimmed, f.lit("{")) & f.endswith(trimmed, f.lit("}"))
    alone = f.try_variant_get(_VARIANT, "$[1]", "bigint") == f.xxhash64(text)
    loose = f.from_json(enclosed, "array<string>", _STRICT)
    well_formed = (f.size(loose) == 2) & (f.get(loose, f.lit(1)) == f.xxhash64(text).cast("string"))
    fits = f.col(decoded).isNotNull() & f.col(decoded)[CORRUPT].isNull()
    misfits = [_misfit(text, f.col(decoded)[item.name], item) for item in schema.fields]
    losses = [_loss(text, f.col(decoded)[item.name], item) for item in schema.fields if _may_be_lost(item.dataType)]
    return (
        f.when(~f.is_valid_utf8(text), "the value is not UTF-8")
        .when(~is_object, "the value is not a JSON object")
        .when(_has_lone_surrogate(text), "the value has half of a surrogate pair")
        .when(~f.coalesce(alone, f.lit(False)),
              f.when(f.coalesce(well_formed, f.lit(False)), "the value has a key twice, or is too large to be checked")
              .otherwise("the value is not well-formed JSON"))
        .when(~fits, f.concat_ws(": ", f.lit("the value does not fit the schema"), _list(misfits)))
        .otherwise(f.concat(f.lit("the value does not fit the schema: "), _list(losses)) if losses else None)
    )


def _list(parts: list[Column]) -> Column:
    """Join the parts that are not null; null if all are."""
    return f.nullif(f.concat_ws(", ", *parts), f.lit(""))


def _misfit(text: Column, value: Column, item: StructField) -> Column:
    """The field and its type, where the text has it and the record has not."""
    path = "$['" + item.name.replace("'", "\\'") + "']"
    there = f.get_json_object(text, path).isNotNull()
    return f.when(there & value.isNull(), f"{item.name} is not of type {item.dataType.simpleString()}")


def _loss(text: Column, value: Column, item: StructField) -> Column:
    """The field and its type, where the record has another value than the text."""
    exact = f.col(_EXACT)[item.name] if _is_compared(item.dataType) else None
    return f.when(_is_lost(text, value, exact, item.dataType),
                  f"{item.name} cannot be kept exactly as {item.dataType.simpleString()}")


def _has_lone_surrogate(text: Column) -> Column:
    """As an escape; its bytes would not be UTF-8."""
    unescaped = f.regexp_replace(text, r"\\\\", "")  # an escaped backslash escapes nothing
    left = f.regexp_replace(unescaped, r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]", "")
    return f.contains(text, f.lit("\\u")) & left.rlike(r"\\u[dD][89a-fA-F]")


# ---- what from_json changes

def _leaves(kind: DataType) -> list[DataType]:
    if isinstance(kind, StructType):
        return [leaf for item in kind.fields for leaf in _leaves(item.dataType)]
    if isinstance(kind, ArrayType):
        return _leaves(kind.elementType)
    return _leaves(kind.valueType) if isinstance(kind, MapType) else [kind]


def _is_compared(kind: DataType) -> bool:
    """Whether it has a leaf that is compared with VARIANT's."""
    return any(type(leaf) in _COMPARED for leaf in _leaves(kind))


def _may_be_lost(kind: DataType) -> bool:
    return _is_compared(kind) or any(isinstance(leaf, (FloatType, DoubleType)) for leaf in _leaves(kind))


def _with_variants(kind: DataType) -> str:
    """The type of the same form whose leaves are what VARIANT has."""
    if isinstance(kind, StructType):
        names = [item.name.replace("`", "``") for item in kind.fields]
        parts = [f"`{name}`: {_with_variants(item.dataType)}" for name, item in zip(names, kind.fields, strict=True)]
        return f"struct<{', '.join(parts)}>"
    if isinstance(kind, ArrayType):
        return f"array<{_with_variants(kind.elementType)}>"
    return f"map<string, {_with_variants(kind.valueType)}>" if isinstance(kind, MapType) else "variant"


def _is_lost(text: Column, value: Column, exact: Column | None, kind: DataType) -> Column:
    """Whether a decoded value is another one than the text's; `exact` is VARIANT's, None where there is none."""
    if not _may_be_lost(kind):
        return f.lit(False)
    if isinstance(kind, StructType):
        parts = [_is_lost(text, value[item.name], None if exact is None else exact[item.name], item.dataType)
                 for item in kind.fields]
        lost = f.greatest(f.lit(False), f.lit(False), *parts)
    elif isinstance(kind, ArrayType):
        lost = _any_lost(text, value, exact, kind.elementType)
    elif isinstance(kind, MapType):
        keys = f.map_keys(value)
        others = None if exact is None else f.transform(keys, lambda key: exact[key])
        lost = _any_lost(text, f.transform(keys, lambda key: value[key]), others, kind.valueType)
    elif isinstance(kind, (FloatType, DoubleType)):
        lost = f.abs(value) == _INFINITY
    else:
        assert exact is not None
        lost = _COMPARED[type(kind)](text, value, exact, kind)
    compared = lost if exact is None else f.when(exact.isNull(), True).otherwise(lost)
    return f.when(value.isNull(), False).otherwise(f.coalesce(compared, f.lit(True)))


def _any_lost(text: Column, values: Column, exact: Column | None, kind: DataType) -> Column:
    if exact is None:
        return f.exists(values, lambda value: _is_lost(text, value, None, kind))
    flags = f.zip_with(values, exact, lambda value, other: _is_lost(text, value, other, kind))
    return f.exists(flags, lambda flag: flag)


def _decimal_is_lost(text: Column, value: Column, exact: Column, kind: Any) -> Column:
    """A number is rounded to the scale; in a string a comma counts for nothing."""
    scales = "|".join(map(str, range(kind.scale + 1)))
    shown = exact.cast("string")
    same = shown.rlike(_NUMBER) & (value.cast("double") == shown.try_cast("double")) & ~text.rlike(_SHORTENED)
    fits = f.length(f.regexp_extract(shown, _FRACTION, 1)) <= kind.scale
    is_short = f.schema_of_variant(exact).rlike(rf"^(?:BIGINT|DECIMAL\(\d+,(?:{scales})\))$")
    return f.when(is_short, False).otherwise(~(same & (fits | shown.rlike("[eE]"))))


def _string_is_lost(text: Column, value: Column, exact: Column, kind: Any) -> Column:
    """A value that is not a string becomes text again; numbers with a fraction or an exponent as the nearest double."""
    found = f.schema_of_variant(exact)
    extreme = text.rlike(_EXTREME)
    number = exact.cast("string").try_cast("double")
    by_double = text.rlike(_SHORTENED) | (extreme & ((f.abs(number) == _INFINITY) | (number == 0.0)))
    same = f.coalesce(value.try_cast(_WIDE) == exact.cast("string").try_cast(_WIDE), f.lit(False))
    return (
        f.when((found == "STRING") | value.rlike(_INTEGER), False)
        .when(found == "DOUBLE", by_double)
        .when(f.startswith(found, f.lit("DECIMAL")), ~same)
        .otherwise(extreme & value.rlike('"-?Infinity"'))
    )


def _timestamp_is_lost(text: Column, value: Column, exact: Column, kind: Any) -> Column:
    """A time of day without a date becomes one of the day on which it is read."""
    return exact.cast("string").rlike(_TIME_ONLY)


_COMPARED: Final[dict[type[DataType], Callable[[Column, Column, Column, Any], Column]]] = {
    DecimalType: _decimal_is_lost, StringType: _string_is_lost, TimestampType: _timestamp_is_lost,
}
