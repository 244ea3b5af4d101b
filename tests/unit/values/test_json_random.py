"""JSON values as columns against Python's json: random schemas, values, ways to write them, and damaged bytes."""

import json
import math
import os
from decimal import Decimal, InvalidOperation

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows import decoded

from kconsumer.decoding import Json

examples = int(os.environ.get("DIFFERENTIAL_EXAMPLES", "80"))
relaxed = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=examples)
seeds = st.randoms(use_true_random=False, note_method_calls=False)
NAMES = ["a", "b", "é", "name with spaces", "a_name_of_more_than_sixteen_bytes", "x" * 14, "y" * 15, "z" * 16]
INTEGERS = {"int64": (-(2**63), 2**63 - 1), "int32": (-(2**31), 2**31 - 1), "uint8": (0, 255), "uint64": (0, 2**64 - 1)}


def random_type(draw, depth=0):
    kinds = [*INTEGERS, "int64", "float64", "float64", "string", "string", "bool"]
    match draw.randrange(10 if depth < 3 else 7):
        case 7:
            return [random_type(draw, depth + 1)]
        case 8 | 9:
            return {name: random_type(draw, depth + 1) for name in draw.sample(NAMES, draw.randint(0, 4))}
    return draw.choice(kinds)


def random_value(draw, kind):
    if draw.random() < 0.1:
        return None
    if isinstance(kind, list):
        return [random_value(draw, kind[0]) for _ in range(draw.randint(0, 4))]
    if isinstance(kind, dict):
        fields = {name: random_value(draw, inner) for name, inner in kind.items() if draw.random() < 0.9}
        if draw.random() < 0.2:
            fields[draw.choice(["unknown", "", "é?", "x" * 20])] = draw.choice([1, "t", [{"a": None}], {"b": [1.5]}])
        return dict(draw.sample(list(fields.items()), len(fields)))
    if kind in INTEGERS:
        low, high = INTEGERS[kind]
        return draw.choice([low, high, 0, 7, draw.randint(low, high), draw.randint(0, 200)])
    if kind == "float64":
        return draw.choice(
            [0.0, -0.0, 12.0, 1.5e300, 5e-324, draw.uniform(-1e6, 1e6), round(draw.uniform(-99, 99), 3), 3]
        )
    if kind == "bool":
        return draw.random() < 0.5
    return "".join(draw.choice('aé€😀"\\\n\0 z/') for _ in range(draw.choice([0, 1, 3, 15, 16, 17, 40])))


def written(draw, value):
    separators = draw.choice([(",", ":"), (", ", ": "), (" ,\n", " :\t")])
    return json.dumps(value, separators=separators, ensure_ascii=draw.random() < 0.5).encode()


class Misfit(Exception):
    """A value that its type cannot have."""


def expected(kind, value):
    """The value in a column for a value of json.loads."""
    if value is None:
        return None
    if isinstance(kind, list) and isinstance(value, list):
        return [expected(kind[0], item) for item in value]
    if isinstance(kind, dict) and isinstance(value, dict):
        return {name: expected(inner, value.get(name)) for name, inner in kind.items()}
    if not isinstance(kind, str):
        raise Misfit
    if kind == "bool" and isinstance(value, bool):
        return value
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if kind in INTEGERS and is_number:
        low, high = INTEGERS[kind]
        if low <= value <= high and value == int(value):
            return int(value)
    if kind == "float64" and is_number:
        try:
            number = float(value)
        except OverflowError:
            raise Misfit from None
        if math.isfinite(number):
            return repr(number)
    if kind == "string" and isinstance(value, str) and not any(0xD800 <= ord(char) < 0xE000 for char in value):
        return value
    raise Misfit


def plain(value):
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {name: plain(item) for name, item in value.items()} if isinstance(value, dict) else value


def number(text):
    """As a Decimal; an exponent of more digits than Decimal has becomes one beyond a double's."""
    try:
        return Decimal(text)
    except InvalidOperation:
        mantissa, _, exponent = text.lower().partition("e")
        return Decimal(mantissa).scaleb(-9999 if exponent.startswith("-") else 9999)


def loaded(data):
    """(value, whether a key came twice); ValueError where it is not JSON."""
    twice = []

    def pairs(found):
        out = dict(found)
        twice.extend([True] * (len(out) < len(found)))
        return out

    def constant(text):
        raise ValueError(text)

    value = json.loads(data.decode(), object_pairs_hook=pairs, parse_float=number, parse_constant=constant)
    return value, bool(twice)


@relaxed
@given(seeds)
def test_as_json_reads_them(draw):
    kind = {name: random_type(draw) for name in draw.sample(NAMES, draw.randint(1, 6))}
    values = [random_value(draw, kind) for _ in range(10)]
    found, bad = decoded(Json(kind), [written(draw, value) for value in values])
    assert not bad
    assert [plain(row) for row in found] == [
        expected(kind, json.loads(json.dumps(value), parse_float=Decimal)) for value in values
    ]


@relaxed
@given(seeds)
def test_damaged_as_json_reads_them(draw):
    kind = {name: random_type(draw) for name in draw.sample(NAMES, draw.randint(1, 6))}
    rows = []
    for _ in range(10):
        data = bytearray(written(draw, random_value(draw, kind)))
        at = draw.randrange(len(data))
        match draw.randrange(4):
            case 0:
                data[at] = draw.choice(b'{}[]",:\\0123456789-+eE.tfn u\x00\x1f\x80\xc3\xff')
            case 1:
                del data[at:]
            case 2:
                data[at:at] = draw.choice([b'"', b"0", b"-", b"1e2", b".5", b"\\u00", b" ", b'"a":1,', b"\xe2\x82"])
            case _:
                del data[at]
        rows.append(bytes(data))
    found, bad = decoded(Json(kind), rows)
    for i, row in enumerate(rows):
        twice = False
        try:
            value, twice = loaded(row)
            wanted = expected(kind, value)
        except (ValueError, Misfit):
            # An earlier value of a key that came twice may be what is wrong, or what was not wrong.
            assert i in bad or twice, row
            continue
        if i in bad:
            assert twice, (row, bad[i])
        else:
            assert plain(found[i]) == wanted, row
