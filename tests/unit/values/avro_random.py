"""Random Avro schemas, readers' schemas for them, and data; and a datum as fastavro reads it, as a row of columns.

No item takes zero bytes: a damaged count would let fastavro read such items without end.
"""

import struct

PRIMITIVES = ["boolean", "int", "long", "float", "double", "bytes", "string"]
PROMOTIONS = {"int": ["int", "long", "double", "float"], "long": ["long", "double"], "float": ["float", "double"],
              "string": ["string", "bytes"]}
KINDS = {"boolean": bool, "int": int, "long": int, "double": float, "float": float, "bytes": bytes, "string": str,
         "record": dict, "map": dict, "array": list}
# type, its default as JSON, and as a row
ADDED = [
    ("long", 5, 5), (["null", "int"], None, None), ({"type": "map", "values": "string"}, {"a": "b"}, [("a", "b")]),
    ("bytes", "\xff", b"\xff"), ({"type": "fixed", "name": "Added2", "size": 2}, "\xfe\0", b"\xfe\0"),
    ({"type": "enum", "name": "Added3", "symbols": ["X", "Y"]}, "Y", "Y"),
    ({"type": "record", "name": "Added4", "fields": [
        {"name": "q", "type": "int", "default": 3}, {"name": "w", "type": ["string", "null"], "default": "ü"}]},
     {}, {"q": 3, "w": "ü"}),
]


def kind_of(schema):
    return schema["type"] if isinstance(schema, dict) else schema


class Schemas:
    """Makes a writer's schema, values of it, and a reader's schema."""

    def __init__(self, draw):
        self.draw = draw
        self.named = {}        # the types by name, which may be used again
        self.is_reused = False

    def name(self):
        return f"n{len(self.named)}"

    def add(self, **schema):
        schema["name"] = self.name()
        self.named[schema["name"]] = schema
        return schema

    def row(self):
        fields = [{"name": f"f{i}", "type": self.schema(3)} for i in range(self.draw.randint(1, 4))]
        return {"type": "record", "name": "row", "fields": fields}

    def record(self, depth):
        fields = [{"name": f"f{i}", "type": self.schema(depth - 1)} for i in range(self.draw.randint(1, 3))]
        return self.add(type="record", fields=fields)

    def schema(self, depth, in_union=False):
        kinds = [*PRIMITIVES, "enum", "fixed", *(["record", "array", "map"] * 2 if depth else [])]
        kinds += ["union"] * 4 if depth and not in_union else []
        if self.named and not in_union and self.draw.random() < 0.1:
            self.is_reused = True
            return self.draw.choice(sorted(self.named))
        match self.draw.choice(kinds):
            case "record":
                return self.record(depth)
            case "array":
                return {"type": "array", "items": self.schema(depth - 1)}
            case "map":
                return {"type": "map", "values": self.schema(depth - 1)}
            case "enum":
                return self.add(type="enum", symbols=["A", "B", "C"])
            case "fixed":
                return self.add(type="fixed", size=self.draw.randint(1, 17))
            case "union":
                return self.union(depth)
            case kind:
                return kind

    def union(self, depth):
        """Branches of different types in Python: fastavro does not say which one it has read."""
        # Of long and double one: fastavro reads a long as the reader's first branch of both.
        choices = ["null", "boolean", self.draw.choice(["long", "double"]), self.draw.choice(["bytes", "string"]),
                   self.draw.choice(["record", "map"]), "array"]
        return [self.record(depth) if branch == "record"
                else {"type": "array", "items": self.schema(depth - 1, True)} if branch == "array"
                else {"type": "map", "values": self.schema(depth - 1, True)} if branch == "map" else branch
                for branch in self.draw.sample(choices, self.draw.randint(1, 4))]

    def value(self, schema):
        draw = self.draw
        if isinstance(schema, list):
            return self.value(draw.choice(schema))
        if isinstance(schema, str) and schema in self.named:
            schema = self.named[schema]
        match kind_of(schema):
            case "record":
                return {entry["name"]: self.value(entry["type"]) for entry in schema["fields"]}
            case "array":
                return [self.value(schema["items"]) for _ in range(draw.choice([0, 1, 2, 5]))]
            case "map":
                return {f"{i}é": self.value(schema["values"]) for i in range(draw.choice([0, 1, 2]))}
            case "enum":
                return draw.choice(schema["symbols"])
            case "fixed":
                return bytes(draw.randrange(256) for _ in range(schema["size"]))
            case "null":
                return None
            case "boolean":
                return draw.random() < 0.5
            case "int":
                return draw.choice([0, -1, 2**31 - 1, -(2**31), draw.randint(-300, 300)])
            case "long":
                return draw.choice([0, -1, 2**63 - 1, -(2**63), draw.randint(-(10**6), 10**6)])
            case "float":
                return draw.choice([0.0, 1.5, -2.25])
            case "double":
                return draw.uniform(-1e9, 1e9)
            case "bytes":
                return bytes(draw.randrange(256) for _ in range(draw.choice([0, 1, 5, 16, 17, 40])))
        return "".join(draw.choice("ab é€😀\0") for _ in range(draw.choice([0, 1, 3, 15, 16, 17, 40])))

    def reader(self, schema):
        """A schema that reads this one's data: fields left out, renamed, added, in another order; wider types."""
        draw = self.draw
        if isinstance(schema, list):
            made = [self.reader(branch) for branch in schema]
            made = made if len({KINDS.get(kind_of(one)) for one in made}) == len(made) else list(schema)
            draw.shuffle(made)
            return made
        match kind_of(schema):
            case "record":
                return {**schema, "fields": self.fields(schema)}
            case "array":
                return {**schema, "items": self.reader(schema["items"])}
            case "map":
                return {**schema, "values": self.reader(schema["values"])}
            case "enum":
                others = [schema, {**schema, "symbols": ["C", "A"], "default": "A"},
                          {**schema, "symbols": ["C", "B", "A"]}]
                return draw.choice(others)
        return draw.choice(PROMOTIONS.get(schema, [schema])) if isinstance(schema, str) else schema

    def fields(self, schema):
        made = []
        for entry in schema["fields"]:
            x = self.draw.random()
            if x < 0.2 and len(schema["fields"]) > 1:
                continue
            renamed = {"name": f"new_{entry['name']}", "aliases": ["none", entry["name"]]}
            made.append({**(renamed if x < 0.35 else {"name": entry["name"]}), "type": self.reader(entry["type"])})
        if schema["name"] == "row":
            kind, default, _ = self.draw.choice(ADDED)
            made.append({"name": "added", "type": kind, "default": default})
        self.draw.shuffle(made)
        return made


def row_of(schema, value, named):
    """Return a datum of fastavro as a row; floats as their bytes."""
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        if value is None or len(branches) == 1:
            return None if value is None else row_of(branches[0], value, named)
        names = [one.get("name", one["type"]) if isinstance(one, dict) else one for one in branches]
        return {name: row_of(branch, value, named) if KINDS[kind_of(branch)] is type(value) else None
                for name, branch in zip(names, branches, strict=True)}
    if isinstance(schema, str) and schema in named:
        schema = named[schema]
    match kind_of(schema):
        case "record":
            return {entry["name"]: next(row for kind, _, row in ADDED if kind == entry["type"])
                    if entry["name"] == "added" else row_of(entry["type"], value[entry["name"]], named)
                    for entry in schema["fields"]}
        case "array":
            return [row_of(schema["items"], item, named) for item in value]
        case "map":
            return [(key, row_of(schema["values"], item, named)) for key, item in value.items()]
        case "float":
            return struct.unpack("<q", struct.pack("<d", struct.unpack("<f", struct.pack("<f", value))[0]))
        case "double":
            return struct.unpack("<q", struct.pack("<d", value))
        case "bytes":
            return value.encode() if isinstance(value, str) else value
    return value


def plain(value):
    """A decoded row in the same form."""
    if isinstance(value, float):
        return struct.unpack("<q", struct.pack("<d", value))
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return (value[0], plain(value[1])) if isinstance(value, tuple) else value
