"""Descriptors of files that registries do not have, as every library does: google/protobuf, google/type, confluent.

Owns: known_files. Threads: any (pure functions). Never: reads a descriptor.
"""

from __future__ import annotations

from functools import cache

(_DOUBLE, _FLOAT, _INT64, _UINT64, _INT32, _BOOL, _STRING, _MESSAGE, _BYTES, _UINT32, _ENUM) = (
    1, 2, 3, 4, 5, 8, 9, 11, 12, 13, 14)
_WRAPPED = {"Double": _DOUBLE, "Float": _FLOAT, "Int64": _INT64, "UInt64": _UINT64, "Int32": _INT32, "UInt32": _UINT32,
            "Bool": _BOOL, "String": _STRING, "Bytes": _BYTES}
_TIME = [("seconds", _INT64), ("nanos", _INT32)]
_P = ".google.protobuf."
_DAY = [("year", _INT32), ("month", _INT32), ("day", _INT32)]
_CLOCK = [("hours", _INT32), ("minutes", _INT32), ("seconds", _INT32), ("nanos", _INT32)]

# (name, type): a type's number, or the full name of a message; "repeated" and "oneof NAME" may follow
_Field = tuple[object, ...]
# folder/file → message → its fields, numbered from 1. Names of enums are in _ENUMS.
_FILES: dict[str, dict[str, list[_Field]]] = {
    "google/protobuf/timestamp": {"Timestamp": [*_TIME]},
    "google/protobuf/duration": {"Duration": [*_TIME]},
    "google/protobuf/wrappers": {f"{name}Value": [("value", kind)] for name, kind in _WRAPPED.items()},
    "google/protobuf/empty": {"Empty": []},
    "google/protobuf/any": {"Any": [("type_url", _STRING), ("value", _BYTES)]},
    "google/protobuf/field_mask": {"FieldMask": [("paths", _STRING, "repeated")]},
    "google/protobuf/source_context": {"SourceContext": [("file_name", _STRING)]},
    "google/protobuf/struct": {
        "Struct": [("fields", f"{_P}Struct.FieldsEntry", "repeated")],
        "Value": [("null_value", f"enum {_P}NullValue", "oneof"), ("number_value", _DOUBLE, "oneof"),
                  ("string_value", _STRING, "oneof"), ("bool_value", _BOOL, "oneof"),
                  ("struct_value", f"{_P}Struct", "oneof"), ("list_value", f"{_P}ListValue", "oneof")],
        "ListValue": [("values", f"{_P}Value", "repeated")],
    },
    "google/type/date": {"Date": [*_DAY]},
    "google/type/timeofday": {"TimeOfDay": [*_CLOCK]},
    "google/type/datetime": {
        "DateTime": [*_DAY, *_CLOCK, ("utc_offset", f"{_P}Duration", "oneof"),
                     ("time_zone", ".google.type.TimeZone", "oneof")],
        "TimeZone": [("id", _STRING), ("version", _STRING)],
    },
    "google/type/interval": {"Interval": [("start_time", f"{_P}Timestamp"), ("end_time", f"{_P}Timestamp")]},
    "google/type/money": {"Money": [("currency_code", _STRING), ("units", _INT64), ("nanos", _INT32)]},
    "google/type/decimal": {"Decimal": [("value", _STRING)]},
    "google/type/fraction": {"Fraction": [("numerator", _INT64), ("denominator", _INT64)]},
    "google/type/latlng": {"LatLng": [("latitude", _DOUBLE), ("longitude", _DOUBLE)]},
    "google/type/quaternion": {"Quaternion": [(name, _DOUBLE) for name in "xyzw"]},
    "google/type/color": {"Color": [*((name, _FLOAT) for name in ("red", "green", "blue")),
                                    ("alpha", f"{_P}FloatValue")]},
    "google/type/expr": {"Expr": [(name, _STRING) for name in ("expression", "title", "description", "location")]},
    "google/type/localized_text": {"LocalizedText": [("text", _STRING), ("language_code", _STRING)]},
    "google/type/dayofweek": {},
    "google/type/month": {},
    "google/type/calendar_period": {},
    "confluent/meta": {},  # options only
    "confluent/type/decimal": {"Decimal": [("value", _BYTES), ("precision", _UINT32), ("scale", _INT32)]},
}
# file → enum, its values from 0
_ENUMS: dict[str, tuple[str, list[str]]] = {
    "google/protobuf/struct": ("NullValue", ["NULL_VALUE"]),
    "google/type/dayofweek": ("DayOfWeek", ["DAY_OF_WEEK_UNSPECIFIED", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY",
                                            "FRIDAY", "SATURDAY", "SUNDAY"]),
    "google/type/month": ("Month", ["MONTH_UNSPECIFIED", "JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE", "JULY",
                                    "AUGUST", "SEPTEMBER", "OCTOBER", "NOVEMBER", "DECEMBER"]),
    "google/type/calendar_period": ("CalendarPeriod", ["CALENDAR_PERIOD_UNSPECIFIED", "DAY", "WEEK", "FORTNIGHT",
                                                       "MONTH", "QUARTER", "HALF", "YEAR"]),
}


def _part(number: int, data: bytes) -> bytes:
    """Encode a field of a message with bytes; no field here exceeds 16 KiB."""
    length = bytes([len(data)]) if len(data) < 0x80 else bytes([len(data) & 0x7F | 0x80, len(data) >> 7])
    return bytes([number << 3 | 2]) + length + data


def _number(number: int, value: int) -> bytes:
    return bytes([number << 3, value])


def _field(number: int, name: str, kind: object, *more: object) -> bytes:
    """A FieldDescriptorProto."""
    made = _part(1, name.encode()) + _number(3, number) + _number(4, 3 if "repeated" in more else 1)
    if isinstance(kind, int):
        made += _number(5, kind)
    else:
        is_enum, _, called = str(kind).rpartition(" ")
        made += _number(5, _ENUM if is_enum else _MESSAGE) + _part(6, called.encode())
    return made + (_number(9, 0) if "oneof" in more else b"")


def _message(name: str, fields: list[_Field]) -> bytes:
    """A DescriptorProto."""
    made = _part(1, name.encode())
    made += b"".join(_part(2, _field(i, str(field[0]), *field[1:])) for i, field in enumerate(fields, 1))
    if name == "Struct":
        entry = _message("FieldsEntry", [("key", _STRING), ("value", f"{_P}Value")])
        made += _part(3, entry + _part(7, _number(7, 1)))
    return made + (_part(8, _part(1, b"kind")) if any("oneof" in field for field in fields) else b"")


def _enum(name: str, values: list[str]) -> bytes:
    """An EnumDescriptorProto."""
    return _part(1, name.encode()) + b"".join(
        _part(2, _part(1, value.encode()) + _number(2, i)) for i, value in enumerate(values))


@cache
def known_files() -> dict[str, bytes]:
    """Name → FileDescriptorProto."""
    made = {}
    for path, messages in _FILES.items():
        package = path.rpartition("/")[0].replace("/", ".")
        parts = [_part(1, f"{path}.proto".encode()), _part(2, package.encode())]
        parts += [_part(4, _message(*one)) for one in messages.items()]
        parts += [_part(5, _enum(*_ENUMS[path]))] if path in _ENUMS else []
        made[f"{path}.proto"] = b"".join([*parts, _part(12, b"proto3")])
    return made
