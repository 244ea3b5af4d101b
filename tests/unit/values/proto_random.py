"""Random Protobuf schemas, random messages of them, and what google.protobuf reads in their bytes, as rows."""

import struct

from google.protobuf.message import DecodeError
from proto_messages import SCALARS, classes, enum, field, file, map_entry, message

INTEGER_BITS = {
    "int32": (-(2**31), 2**31 - 1),
    "sint32": (-(2**31), 2**31 - 1),
    "sfixed32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "sint64": (-(2**63), 2**63 - 1),
    "sfixed64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "fixed32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
    "fixed64": (0, 2**64 - 1),
}
KEYS = [*INTEGER_BITS, "bool", "string"]
NUMBERS = [*range(1, 20), 100, 1023, 1024, 1025, 2047, 2048, 18999, 2**29 - 1]
WELL_KNOWN = [
    ".google.protobuf." + name
    for name in (
        "Timestamp",
        "Duration",
        "Int64Value",
        "UInt32Value",
        "DoubleValue",
        "BoolValue",
        "StringValue",
        "BytesValue",
    )
]
WRAPPERS = {name for name in WELL_KNOWN if name.endswith("Value")}


def random_file(draw, maps, required):
    """A file of messages M0, M1 … of which each may have fields of later ones."""
    syntax = draw.choice(["proto2", "proto3", "proto3", "editions"])
    count = draw.randint(1, 4)
    made = [random_message(draw, i, count, syntax, (maps, required)) for i in range(count)]
    enums = [enum("E", ZERO=0, ONE=1, ALSO_ONE=1, NEGATIVE=-3, FAR=100000)]
    return file(*made, enums=enums, syntax=syntax)


def random_message(draw, index, count, syntax, options_of):
    maps, required = options_of
    name = f"M{index}"
    fields, nested, oneofs = [], [], []
    for number in draw.sample(NUMBERS, draw.randint(0, 7)):
        kinds = [*SCALARS, *SCALARS, *WELL_KNOWN, "enum .t.E", *["map"] * maps]
        if index + 1 < count:
            kinds += [f".t.M{draw.randrange(index + 1, count)}"] * 6
        kind, called = draw.choice(kinds), f"f{number}"
        if kind == "map":
            value = draw.choice([entry for entry in kinds if entry != "map"])
            nested.append(map_entry(f"F{number}Entry", draw.choice(KEYS), value))
            fields.append(field(called, number, f".t.{name}.F{number}Entry", repeated=True))
            continue
        options = {}
        match draw.randrange(5):
            case 0 | 1:
                options["repeated"] = True
                if (kind in SCALARS and kind not in ("string", "bytes")) or kind.startswith("enum"):
                    if syntax != "editions":
                        options["packed"] = draw.random() < 0.5
            case 2:
                if not oneofs:
                    oneofs.append("one")
                options["oneof"] = 0
            case 3:
                if syntax == "proto3" and not kind.startswith("."):
                    options["optional"] = True
                options["required"] = required and syntax == "proto2" and draw.random() < 0.7
        if syntax == "proto2" and kind.startswith(".t.") and draw.random() < 0.3:
            kind = "group " + kind
        fields.append(field(called, number, kind, **options))
    return message(name, *fields, oneofs=oneofs, nested=nested)


def random_value(draw, of):
    kind = next((name for name, number in SCALARS.items() if number == of.type), None)
    if kind in INTEGER_BITS:
        low, high = INTEGER_BITS[kind]
        return draw.choice([low, high, 0, 1, max(low, -1), draw.randint(low, high), draw.randint(max(low, -200), 200)])
    if kind == "bool":
        return draw.random() < 0.5
    if kind == "double":
        return draw.choice([0.0, -0.0, 1.5, float("inf"), float("nan"), draw.uniform(-1e9, 1e9)])
    if kind == "float":
        return draw.choice([0.0, 1.5, -2.25, float("-inf"), float("nan")])
    if kind == "string":
        return "".join(draw.choice("aé€😀\0 z") for _ in range(draw.choice([0, 1, 3, 17, 40])))
    if kind == "bytes":
        return bytes(draw.randrange(256) for _ in range(draw.choice([0, 1, 3, 17])))
    return draw.choice([entry.number for entry in of.enum_type.values])


def fill(draw, into):
    """Set some fields of a message."""
    name = into.DESCRIPTOR.full_name
    if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        into.seconds = draw.choice([0, 1, 1700000000, 9_000_000_000])
        into.nanos = draw.choice([0, 1, 999_999_999])
        return
    for of in into.DESCRIPTOR.fields:
        if draw.random() < 0.35:
            continue
        target = getattr(into, of.name)
        if of.message_type is not None and of.message_type.GetOptions().map_entry:
            key, value = of.message_type.fields
            for _ in range(draw.choice([0, 1, 2, 20])):
                at = random_value(draw, key)
                if value.message_type is not None:
                    fill(draw, target[at])
                else:
                    target[at] = random_value(draw, value)
        elif of.is_repeated:
            for _ in range(draw.choice([0, 1, 2, 5])):
                if of.message_type is not None:
                    fill(draw, target.add())
                else:
                    target.append(random_value(draw, of))
        elif of.message_type is not None:
            target.SetInParent()
            fill(draw, target)
        else:
            setattr(into, of.name, random_value(draw, of))


def random_bytes(draw, cls):
    """One to three messages, one after the other: their fields are merged; and often something unknown."""
    out = []
    for _ in range(draw.choice([1, 1, 2, 3])):
        made = cls()
        fill(draw, made)
        out.append(made.SerializePartialToString())
        if draw.random() < 0.2:  # unknown: a varint, text, and a group with a group in it
            out.append(draw.choice([b"\xa8\x7d\x05", b"\xaa\x7d\x02ab", b"\xab\x7d\x08\x01\xb3\x7d\xb4\x7d\xac\x7d"]))
    return b"".join(out)


def damaged(draw, data):
    out = bytearray(data)
    for _ in range(draw.choice([1, 1, 2])):
        at = draw.randrange(len(out) + 1)
        match draw.randrange(4):
            case 0 if at < len(out):
                out[at] = draw.randrange(256)
            case 1:
                del out[at:]
            case 2:
                out[at:at] = bytes(draw.randrange(256) for _ in range(draw.randint(1, 3)))
            case _:
                del out[at : at + 1]
    return bytes(out)


# ---- what google.protobuf reads


def parsed(cls, data):
    """The message, or None where google.protobuf refuses it."""
    try:
        return cls.FromString(data)
    except DecodeError:
        return None


def bits(value):
    """A float as its bytes, so that NaN and -0.0 are compared too."""
    return struct.pack("<d", value) if isinstance(value, float) else value


def scalar_of(of, value):
    name = of.message_type.full_name if of.message_type is not None else ""
    if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        return value.seconds * 10**9 + value.nanos
    if "." + name in WRAPPERS:
        return bits(value.value)
    return row_of(value) if name else bits(value)


def row_of(made):
    out = {}
    for of in made.DESCRIPTOR.fields:
        value = getattr(made, of.name)
        if of.message_type is not None and of.message_type.GetOptions().map_entry:
            item = of.message_type.fields_by_name["value"]
            out[of.name] = {key: scalar_of(item, value[key]) for key in value}
        elif of.is_repeated:
            out[of.name] = [scalar_of(of, item) for item in value]
        elif of.has_presence and not made.HasField(of.name):
            out[of.name] = None
        else:
            out[of.name] = scalar_of(of, value)
    return out


def plain(value):
    """A decoded row in the same form."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return bits(value.value if hasattr(value, "value") else value)


def random_class(draw, maps=True, required=True):
    return classes(random_file(draw, maps, required))["t.M0"]
