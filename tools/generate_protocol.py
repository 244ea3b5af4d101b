"""Writes the codecs of src/_core/protocol/messages from the message schemas inside the kafka-clients jar.

    python tools/generate_protocol.py [--check] [--jar PATH]

Owns: everything in src/_core/protocol/messages except __init__.py, and src/_core/protocol/api_keys.{hpp,pxd}.
Threads: none (a developer's tool). Never: copies the schemas' prose, depends on the order of a set or on the Python
version. ``--check`` writes nothing and fails where a committed file differs. Without ``--jar`` the pinned jar is
fetched through Maven into build/.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

KAFKA_VERSION = "4.4.0"
MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
ROOT = Path(__file__).resolve().parent.parent
PROTOCOL = Path("src/_core/protocol")

APIS = (
    "ApiVersions", "Metadata", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "FindCoordinator", "JoinGroup",
    "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", "ConsumerGroupHeartbeat",
    "ConsumerGroupDescribe", "DescribeGroups", "DescribeConfigs", "SaslHandshake", "SaslAuthenticate",
    "GetTelemetrySubscriptions", "PushTelemetry",
)
OTHERS = ("RequestHeader", "ResponseHeader", "ConsumerProtocolSubscription", "ConsumerProtocolAssignment")

# Schema type -> (C++ type, bytes on the wire).
FIXED = {
    "bool": ("bool", 1), "int8": ("int8_t", 1), "int16": ("int16_t", 2), "uint16": ("uint16_t", 2),
    "int32": ("int32_t", 4), "uint32": ("uint32_t", 4), "int64": ("int64_t", 8), "float64": ("double", 8),
    "uuid": ("Uuid", 16),
}
# Arrays of int32 that stay where they were received, message by message: what is decoded is short-lived and large.
VIEWED = {"MetadataResponse": {"replica_nodes", "isr_nodes", "offline_replicas"}}
# The most elements that an array may have, by a constant of types.hpp.
BOUNDED = {"MetadataResponse": {"brokers": "MAX_BROKERS", "topics": "MAX_TOPICS", "partitions": "MAX_PARTITIONS"}}
INTEGERS = ("int8", "int16", "uint16", "int32", "uint32", "int64")
RESERVED = frozenset(
    "and as assert async await auto bool break by case cdef char class const continue cpdef def default del delete "
    "do double elif else enum except export extern False finally float for from global if import in include inline "
    "int is lambda long namespace new None nonlocal not operator or pass private public raise register return short "
    "signed sizeof static struct switch template this throw True try typedef union unsigned using virtual void "
    "volatile while with yield encode decode can_encode each_field is_default min_size version".split()
)
RESERVED_AT_TOP = RESERVED | {"name", "api_key", "min_version", "max_version"}


class SchemaError(Exception):
    """A schema uses something that this generator does not know."""


@dataclass(frozen=True)
class Versions:
    low: int
    high: int

    @staticmethod
    def parse(text: str | None) -> Versions:
        if text is None or text == "none":
            return NO_VERSIONS
        if match := re.fullmatch(r"(\d+)\+", text):
            return Versions(int(match[1]), 0x7FFF)
        if match := re.fullmatch(r"(\d+)(?:-(\d+))?", text):
            return Versions(int(match[1]), int(match[2] or match[1]))
        raise SchemaError(f"versions {text!r}")

    def __bool__(self) -> bool:
        return self.low <= self.high

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __and__(self, other: Versions) -> Versions:
        both = Versions(max(self.low, other.low), min(self.high, other.high))
        return both or NO_VERSIONS

    def covers(self, other: Versions) -> bool:
        return not other or (self.low <= other.low and other.high <= self.high)

    def condition(self, within: Versions) -> str:
        """The C++ test for a version that is known to lie in ``within``."""
        if self.covers(within):
            return "true"
        if not self & within:
            return "false"
        tests = [f"version >= {self.low}"] if self.low > within.low else []
        tests += [f"version <= {self.high}"] if self.high < within.high else []
        return " && ".join(tests)


NO_VERSIONS = Versions(1, 0)


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def negated(condition: str) -> str:
    match = re.fullmatch(r"version (>=|<=) (\d+)", condition)
    if not match:
        return f"!({condition})"
    return f"version < {match[2]}" if match[1] == ">=" else f"version > {match[2]}"


def opposite(test: str) -> str:
    """Of what Field.is_set() gives."""
    if test.startswith("!"):
        return test[1:]
    return test.replace(" != ", " == ") if " != " in test else f"!{test}"


def both(*conditions: str) -> str:
    return " && ".join(c for c in conditions if c != "true") or "true"


@dataclass
class Field:
    name: str
    label: str  # what an error calls it
    kind: str  # a key of FIXED, or string, bytes, records, struct, structs, integers, strings
    type: str  # the schema's type of the value, or of the element
    struct: Struct | None
    versions: Versions  # within the message's valid ones
    nullable: Versions
    tagged: bool
    tag: int
    default: str
    ignorable: bool
    never_flexible: bool
    viewed: bool
    most: str  # a constant, or empty

    @property
    def is_nullable(self) -> bool:
        return bool(self.nullable) and self.kind != "records"

    @property
    def default_is_null(self) -> bool:
        return self.default == "null"

    @property
    def plain_type(self) -> str:
        if self.kind in FIXED:
            return FIXED[self.kind][0]
        if self.kind in ("string", "bytes"):
            return "std::string"
        if self.kind == "records":
            return "BytesView"
        if self.kind == "struct":
            return self.struct.name
        if self.viewed:
            return "Int32Array"
        element = {"structs": lambda: self.struct.name, "strings": lambda: "std::string"}
        return f"std::vector<{element.get(self.kind, lambda: FIXED[self.type][0])()}>"

    @property
    def cpp_type(self) -> str:
        if not self.is_nullable:
            return self.plain_type
        return "NullableString" if self.kind in ("string", "bytes") else f"Nullable<{self.plain_type}>"

    def literal(self) -> str:
        """The default as a C++ value; only kinds that have one."""
        if self.kind == "bool":
            return self.default or "false"
        if self.kind == "float64":
            return repr(float(self.default or 0))
        value = int(self.default or "0", 0)
        named = {-(2**31): "INT32_MIN", 2**31 - 1: "INT32_MAX", -(2**63): "INT64_MIN", 2**63 - 1: "INT64_MAX"}
        return named.get(value, str(value))

    def initializer(self) -> str:
        if self.is_nullable:
            return "" if self.default_is_null else "{PRESENT}"
        if self.kind in FIXED and self.kind != "uuid":
            return f" = {self.literal()}"
        return ""

    def reset(self) -> str:
        if self.is_nullable:
            return f"{self.name}.set_null();" if self.default_is_null else f"{self.name}.set_present().clear();"
        if self.kind in ("uuid", "records", "struct"):
            return f"{self.name} = {self.plain_type}();"
        if self.kind in FIXED:
            return f"{self.name} = {self.literal()};"
        return f"{self.name}.clear();"

    def is_set(self) -> str:
        """The C++ test for a value other than the default."""
        if self.is_nullable:
            if self.default_is_null:
                return f"!{self.name}.is_null"
            return f"({self.name}.is_null || !{self.name}.value.empty())"
        if self.kind == "bool":
            return f"!{self.name}" if self.literal() == "true" else self.name
        simple = {"uuid": "is_zero", "records": "is_null", "struct": "is_default"}
        if self.kind in FIXED and self.kind != "uuid":
            return f"{self.name} != {self.literal()}"
        return f"!{self.name}.{simple.get(self.kind, 'empty')}()"

    def least_bytes(self, version: int, flexible: bool) -> int:
        if self.kind in FIXED:
            return FIXED[self.kind][1]
        if self.kind == "struct":
            return 1 if version in self.nullable else self.struct.least_bytes(version)
        if flexible and not self.never_flexible:
            return 1
        return 2 if self.kind == "string" else 4

    def arguments(self, flexible: str, within: Versions) -> tuple[list[str], list[str]]:
        """The further arguments of the Reader's and Writer's methods: (version), (flexible, nullable)."""
        version = ["version"] if self.kind in ("struct", "structs") else []
        rest = [] if self.kind == "struct" else ["false" if self.never_flexible else flexible]
        if self.is_nullable or self.kind == "records":
            rest.append(self.nullable.condition(within))
        return version, rest

    def method(self) -> str:
        if self.kind == "records":
            return "view"
        nullable = "nullable_" if self.is_nullable and self.kind in ("string", "bytes", "struct") else ""
        return nullable + self.kind

    def read(self, flexible: str, within: Versions) -> str:
        if self.kind in FIXED:
            return f'{self.name} = r.read_{self.method()}("{self.label}");'
        version, rest = self.arguments(flexible, within)
        if self.kind == "struct" and not self.is_nullable:
            return f"{self.name}.decode(r, version);"
        if self.kind == "records":
            return f'{self.name} = r.read_view({", ".join(rest)}, "{self.label}");'
        most = f", {self.most}" if self.most else ""
        return f'r.read_{self.method()}({", ".join([self.name, *version, *rest])}, "{self.label}"{most});'

    def write(self, flexible: str, within: Versions) -> str:
        if self.kind in FIXED:
            return f"w.write_{self.method()}({self.name});"
        version, rest = self.arguments(flexible, within)
        if self.kind == "struct" and not self.is_nullable:
            return f"{self.name}.encode(w, version);"
        return f"w.write_{self.method()}({', '.join([self.name, *version, *rest])});"


@dataclass
class Struct:
    name: str
    versions: Versions
    flexible: Versions
    fields: list[Field] = field(default_factory=list)
    top: Message | None = None
    compared: bool = False  # a caller uses is_default()

    @property
    def untagged(self) -> list[Field]:
        return [f for f in self.fields if not f.tagged]

    @property
    def tagged(self) -> list[Field]:
        return sorted((f for f in self.fields if f.tagged), key=lambda f: f.tag)

    @property
    def flexible_word(self) -> str:
        condition = self.flexible.condition(self.versions)
        return condition if condition in ("true", "false") else "flexible"

    def least_bytes(self, version: int) -> int:
        flexible = version in self.flexible
        fields = sum(f.least_bytes(version, flexible) for f in self.untagged if version in f.versions)
        return max(1, fields + flexible)

    def can_refuse(self) -> bool:
        return any(self.refusals(f) for f in self.fields)

    def refusals(self, f: Field) -> list[str]:
        """The statements by which can_encode() refuses ``f``."""
        present = f.versions.condition(self.versions)
        lines = []
        answer = f'return refuse_field(field, "{f.label}");'
        if present != "true" and not f.ignorable:
            lines += wrapped_if(both(negated(present), f.is_set()), answer)
        if f.is_nullable and not f.nullable.covers(f.versions & self.versions):
            nullable = f.nullable.condition(f.versions & self.versions)
            lines += wrapped_if(both(present, negated(nullable), f"{f.name}.is_null"), answer)
        if f.struct is None or not f.struct.can_refuse():
            return lines
        value = f"{f.name}.value" if f.is_nullable else f.name
        if f.kind == "struct":
            test = both(present, *([f"!{f.name}.is_null"] if f.is_nullable else []))
            test = both(test, f"!{value}.can_encode(version, field)")
            return [*lines, *wrapped_if(test, "return false;")]
        loop = [f"for (const auto& element : {value}) {{",
                "  if (!element.can_encode(version, field)) return false;", "}"]
        if present != "true":
            loop = [f"if ({present}) {{", *("  " + line for line in loop), "}"]
        return lines + loop


def wrapped_if(condition: str, statement: str) -> list[str]:
    line = f"if ({condition}) {statement}"
    return [line] if len(line) <= 110 else [f"if ({condition}) {{", f"  {statement}", "}"]


@dataclass
class Message:
    name: str
    kind: str  # request, response, header, data
    api_key: int
    valid: Versions
    flexible: Versions
    structs: list[Struct] = field(default_factory=list)  # an element before whatever holds it

    @property
    def top(self) -> Struct:
        return self.structs[-1]


class Parser:
    """Turns one schema into a Message."""

    def __init__(self, schema: dict) -> None:
        self.valid = Versions.parse(schema["validVersions"])
        self.flexible = Versions.parse(schema["flexibleVersions"])
        self.message = Message(schema["name"], schema["type"], schema.get("apiKey", -1), self.valid, self.flexible)
        self.common = {s["name"]: s for s in schema.get("commonStructs", [])}
        self.done: dict[str, Struct] = {}
        top = self.struct(schema["name"], schema["fields"], self.valid, top=True)
        top.top = self.message

    def struct(self, kafka_name: str, fields: list[dict], versions: Versions, top: bool = False) -> Struct:
        if kafka_name in self.done:
            raise SchemaError(f"{self.message.name}: two structs named {kafka_name}")
        name = kafka_name if top else f"{self.message.name}_{kafka_name}"
        struct = Struct(name, versions, self.flexible)
        prefix = "" if top else f"{kafka_name}."
        for schema in fields:
            parsed = self.field(schema, prefix, versions)
            if parsed is not None:
                struct.fields.append(parsed)
        tags = [f.tag for f in struct.tagged]
        if tags != sorted(set(tags)) or len(tags) > 127:
            raise SchemaError(f"{name}: tags {tags}")
        self.done[kafka_name] = struct
        self.message.structs.append(struct)
        return struct

    def field(self, schema: dict, prefix: str, within: Versions) -> Field | None:
        tagged_versions = Versions.parse(schema.get("taggedVersions"))
        versions = Versions.parse(schema.get("versions", schema.get("taggedVersions"))) & within
        if not versions:
            return None
        name = snake_case(schema["name"])
        where = f"{self.message.name}: {prefix}{name}"
        if name in (RESERVED if prefix else RESERVED_AT_TOP):
            raise SchemaError(f"{where}: a reserved word")
        if tagged_versions and not tagged_versions.covers(versions):
            raise SchemaError(f"{where}: tagged in some versions only")
        if schema.get("flexibleVersions") not in (None, "none"):
            raise SchemaError(f"{where}: flexibleVersions {schema['flexibleVersions']!r}")
        kind, element = self.kind(schema["type"], where)
        struct = self.inner(element, schema, versions, where) if kind in ("struct", "structs") else None
        nullable = Versions.parse(schema.get("nullableVersions")) & versions
        if kind == "struct" and nullable and tagged_versions:
            raise SchemaError(f"{where}: a tagged struct that may be null")
        default = str(schema.get("default", ""))
        if kind not in FIXED and default not in ("", "null"):
            raise SchemaError(f"{where}: default {default!r}")
        if kind == "struct" and nullable and default != "null":
            raise SchemaError(f"{where}: a struct that may be null and is not by default")
        return Field(name, prefix + name, kind, element, struct, versions, nullable, bool(tagged_versions),
                     schema.get("tag", -1), default, bool(schema.get("ignorable", False)),
                     schema.get("flexibleVersions") == "none", name in VIEWED.get(self.message.name, ()),
                     BOUNDED.get(self.message.name, {}).get(name, ""))

    @staticmethod
    def kind(type_name: str, where: str) -> tuple[str, str]:
        element = type_name.removeprefix("[]")
        if element == type_name:
            if element in FIXED or element in ("string", "bytes", "records"):
                return element, element
            if element[0].isupper():
                return "struct", element
        elif element in INTEGERS:
            return "integers", element
        elif element == "string":
            return "strings", element
        elif element[0].isupper():
            return "structs", element
        raise SchemaError(f"{where}: type {type_name!r}")

    def inner(self, name: str, schema: dict, versions: Versions, where: str) -> Struct:
        if name not in self.common:
            return self.struct(name, schema["fields"], versions)
        if name not in self.done:
            common = self.common[name]
            # Where it is used decides nothing: the same struct may be used by fields of different versions.
            self.struct(name, common["fields"], Versions.parse(common["versions"]) & self.valid)
        struct = self.done[name]
        if not struct.versions.covers(versions):
            raise SchemaError(f"{where}: common struct {name} lacks versions")
        return struct


def mark_compared(message: Message) -> None:
    """Finds the structs whose is_default() is called, by an encoder or by another is_default()."""
    for struct in reversed(message.structs):
        for f in struct.fields:
            if f.kind == "struct" and not f.is_nullable:
                lost = not f.ignorable and not f.versions.covers(struct.versions)
                f.struct.compared |= f.tagged or lost or struct.compared


class CppWriter:
    """One header: the request and the response of an API, or one lone message."""

    def __init__(self, title: str, messages: list[Message]) -> None:
        self.lines = [
            f"// Generated from kafka-clients {KAFKA_VERSION} by tools/generate_protocol.py; not to be edited.",
            f"// Owns: the wire form of {title}, all versions. Threads: any (values). Never: knows a connection.",
            "#pragma once",
            "#include <cstdint>",
            "#include <string>",
            "#include <vector>",
            "",
            '#include "protocol/wire.hpp"',
            "",
            "namespace kc {",
        ]
        for message in messages:
            for struct in message.structs:
                self.lines.append("")
                self.struct(struct)
        self.lines += ["", "}  // namespace kc", ""]

    def text(self) -> str:
        return "\n".join(self.lines)

    def add(self, depth: int, *lines: str) -> None:
        self.lines += ["  " * depth + line for line in lines]

    def struct(self, struct: Struct) -> None:
        self.add(0, f"struct {struct.name} {{")
        if struct.top:
            self.constants(struct.top)
        for f in struct.fields:
            self.add(1, f"{f.cpp_type} {f.name}{f.initializer()};")
        self.lines.append("")
        self.encode(struct)
        self.decode(struct)
        self.can_encode(struct)
        if struct.compared:
            self.is_default(struct)
        if not struct.top:
            self.min_size(struct)
        self.each_field(struct)
        self.add(0, "};")

    def constants(self, message: Message) -> None:
        self.add(1, f'static constexpr const char* name = "{message.name}";')
        if message.api_key >= 0:
            self.add(1, f"static constexpr int16_t api_key = {message.api_key};")
        self.add(1, f"static constexpr int16_t min_version = {message.valid.low};")
        self.add(1, f"static constexpr int16_t max_version = {message.valid.high};")
        if message.kind in ("request", "response"):
            request, response = header_versions(message)
            if message.kind == "request":
                self.header_version("header_version", message, *request)
                self.header_version("response_header_version", message, *response)
            else:
                self.header_version("header_version", message, *response)
        self.lines.append("")

    def header_version(self, name: str, message: Message, plain: int, flexible: int) -> None:
        condition = message.flexible.condition(message.valid)
        if plain == flexible or condition in ("true", "false"):
            value = flexible if condition == "true" else plain
            self.add(1, f"static constexpr int16_t {name}(int16_t) {{ return {value}; }}")
        else:
            value = f"{condition} ? {flexible} : {plain}"
            self.add(1, f"static constexpr int16_t {name}(int16_t version) {{ return {value}; }}")

    def function(self, struct: Struct, signature: str, names: list[str], body: list[str]) -> None:
        """A function whose parameters lose their names where the body has no use for them."""
        for name in names:
            if not any(re.search(rf"\b{name}\b", line) for line in body):
                signature = re.sub(rf"\b{name}\b(?=[,)])", "", signature).replace(" ,", ",").replace(" )", ")")
        self.add(1, signature + " {")
        self.add(2, *body)
        self.add(1, "}")

    def with_flexible(self, struct: Struct, body: list[str]) -> list[str]:
        if not any(re.search(r"\bflexible\b", line) for line in body):
            return body
        return [f"const bool flexible = {struct.flexible.condition(struct.versions)};", *body]

    def runs(self, struct: Struct) -> Iterator[tuple[str, Versions, list[Field]]]:
        """Neighbouring untagged fields that are present in the same versions."""
        run: list[Field] = []
        for f in [*struct.untagged, None]:
            if run and (f is None or f.versions & struct.versions != run[0].versions & struct.versions):
                versions = run[0].versions & struct.versions
                yield versions.condition(struct.versions), versions, run
                run = []
            if f is not None:
                run.append(f)

    def encode(self, struct: Struct) -> None:
        word = struct.flexible_word
        body: list[str] = []
        for condition, versions, run in self.runs(struct):
            writes = [f.write(word, versions) for f in run]
            body += writes if condition == "true" else [f"if ({condition}) {{", *indented(writes), "}"]
        if word != "false":
            body += guarded(word, self.encode_tags(struct))
        self.function(struct, "void encode(Writer& w, int16_t version) const", ["w", "version"],
                      self.with_flexible(struct, body))

    def encode_tags(self, struct: Struct) -> list[str]:
        if not struct.tagged:
            return ["w.write_uvarint(0);"]
        flexible = struct.flexible & struct.versions
        lines = ["Writer::Tags tags = w.begin_tags();"]
        for f in struct.tagged:
            test = both(f.versions.condition(flexible), f.is_set())
            lines += [f"if ({test}) {{", f"  w.begin_tag(tags, {f.tag});", f"  {f.write('true', f.versions)}",
                      "  w.end_tag(tags);", "}"]
        return lines

    def decode(self, struct: Struct) -> None:
        word = struct.flexible_word
        body = ["r.begin(name, version);"] if struct.top else []
        for condition, versions, run in self.runs(struct):
            reads = [f.read(word, versions) for f in run]
            if condition == "true":
                body += reads
            else:
                body += [f"if ({condition}) {{", *indented(reads), "} else {", *indented(f.reset() for f in run), "}"]
        body += [f.reset() for f in struct.tagged]
        if word != "false":
            body += guarded(word, self.decode_tags(struct))
        self.function(struct, "void decode(Reader& r, int16_t version)", ["r", "version"],
                      self.with_flexible(struct, body))

    def decode_tags(self, struct: Struct) -> list[str]:
        prefix = struct.fields[0].label.rpartition(".")[0] if struct.fields else ""
        label = f"{prefix}.tagged_fields" if prefix else "tagged_fields"
        if not struct.tagged:
            return [f'r.skip_tagged_fields("{label}");']
        flexible = struct.flexible & struct.versions
        lines = [f'for (TaggedFields tags(r, "{label}"); tags.next();) {{', "  switch (tags.tag()) {"]
        for f in struct.tagged:
            condition = f.versions.condition(flexible)
            read = f.read("true", f.versions)
            lines.append(f"    case {f.tag}:")
            if condition == "true":
                lines.append(f"      {read}")
            else:
                lines += [f"      if ({condition}) {{", f"        {read}", "      } else {", "        tags.skip();",
                          "      }"]
            lines.append("      break;")
        return [*lines, "    default:", "      tags.skip();", "  }", "}"]

    def can_encode(self, struct: Struct) -> None:
        body = [line for f in struct.fields for line in struct.refusals(f)]
        if body or struct.top:
            self.function(struct, "bool can_encode(int16_t version, const char** field) const", ["version", "field"],
                          [*body, "return true;"])

    def is_default(self, struct: Struct) -> None:
        tests = " && ".join(opposite(f.is_set()) for f in struct.fields)
        self.add(1, "bool is_default() const {", f"  return {tests};", "}")

    def min_size(self, struct: Struct) -> None:
        """Steps of the least encoded size, from the newest version down."""
        sizes = [(v, struct.least_bytes(v)) for v in range(struct.versions.low, struct.versions.high + 1)]
        steps = [(v, n) for i, (v, n) in enumerate(sizes) if i == 0 or sizes[i - 1][1] != n]
        terms = [f"version >= {v} ? {n} : " for v, n in reversed(steps[1:])]
        parameter = "int16_t version" if terms else "int16_t"
        self.add(1, f"static constexpr size_t min_size({parameter}) {{",
                 f"  return {''.join(terms)}{steps[0][1]};", "}")

    def each_field(self, struct: Struct) -> None:
        calls = [f'f("{f.name}", {f.name});' for f in struct.fields]
        self.add(1, "template <class F>", f"void each_field(F&& {'f' if calls else ''}) {{".replace(" )", ")"))
        self.add(2, *calls)
        self.add(1, "}")


def indented(lines: Iterator[str] | list[str]) -> list[str]:
    return ["  " + line for line in lines]


def guarded(word: str, lines: list[str]) -> list[str]:
    return lines if word == "true" else [f"if ({word}) {{", *indented(lines), "}"]


def header_versions(message: Message) -> tuple[tuple[int, int], tuple[int, int]]:
    """Header versions (not flexible, flexible) of the request and of the response."""
    # A client that asks for ApiVersions does not know yet what the broker speaks: the answer's header stays at 0.
    return (1, 2), (0, 0) if message.name.startswith("ApiVersions") else (0, 1)


PXD_NAMES = {"std::string": "string", "double": "double", "bool": "bint"}


def pxd_type(f: Field) -> str:
    text = f.cpp_type
    if text in PXD_NAMES:
        return PXD_NAMES[text]
    return text.replace("std::", "").replace("<", "[").replace(">", "]")


def pxd_file(stem: str, messages: list[Message]) -> str:
    lines: list[str] = []
    for message in messages:
        for struct in message.structs:
            lines += ["", f"    cdef cppclass {struct.name}:", f"        {struct.name}()"]
            lines += [f"        {pxd_type(f)} {f.name}" for f in struct.fields]
            if struct.top:
                lines += ["        void encode(Writer& w, int16_t version)",
                          "        void decode(Reader& r, int16_t version)",
                          "        bint can_encode(int16_t version, const char** field)"]
        names = ["api_key"] if message.api_key >= 0 else []
        lines.append("")
        lines += [f'    const int16_t {message.name}_{name} "kc::{message.name}::{name}"'
                  for name in [*names, "min_version", "max_version"]]
    body = "\n".join(lines)
    used = lambda names: [n for n in names if re.search(rf"\b{n}\b", body)]  # noqa: E731 - shorter than a function
    base = ("int16_t", "int32_t", "int64_t", "int8_t", "string", "uint16_t", "uint32_t", "vector")
    types = used(("BytesView", "Int32Array", "Nullable", "NullableString", "Uuid"))
    head = [f"# Generated from kafka-clients {KAFKA_VERSION} by tools/generate_protocol.py; not to be edited.",
            f"# Declares protocol/messages/{stem}.hpp for Cython. thread: any (values).",
            f"from kconsumer._core.base.cpp cimport {', '.join(used(base))}"]
    if types:
        head.append(f"from kconsumer._core.protocol.types cimport {', '.join(types)}")
    head += ["from kconsumer._core.protocol.wire cimport Reader, Writer", "", "",
             f'cdef extern from "protocol/messages/{stem}.hpp" namespace "kc" nogil:']
    return "\n".join(head) + "\n" + body.lstrip("\n") + "\n"


def all_file(messages: list[Message], stems: list[str]) -> str:
    lines = [f"// Generated from kafka-clients {KAFKA_VERSION} by tools/generate_protocol.py; not to be edited.",
             "// Owns: the list of all messages, for tests and fuzzing. Threads: any. Never: part of the core itself.",
             "#pragma once"]
    lines += [f'#include "protocol/messages/{stem}.hpp"' for stem in sorted(stems)]
    lines += ["", "#define KC_FOR_EACH_MESSAGE(X) \\"]
    lines += [f"  X({m.name}) \\" for m in messages]
    lines[-1] = lines[-1].removesuffix(" \\")
    return "\n".join(lines) + "\n"


def api_constant(api: str) -> str:
    return f"API_{snake_case(api).upper()}"


def api_keys_hpp(keys: list[tuple[str, int]]) -> str:
    enum = [f"  {api_constant(api)} = {key}," for api, key in keys]
    cases = [f'    case {api_constant(api)}: return "{api}";' for api, key in keys]
    return "\n".join([
        f"// Generated from kafka-clients {KAFKA_VERSION} by tools/generate_protocol.py; not to be edited.",
        "// Owns: the numbers and names of the APIs this client speaks. Threads: any. Never: holds state.",
        "#pragma once", "#include <cstdint>", "", "namespace kc {", "", "enum ApiKey : int16_t {", *enum, "};", "",
        "inline const char* api_name(int16_t api_key) {", "  switch (api_key) {", *cases,
        '    default: return "unknown API";', "  }", "}", "", "}  // namespace kc", ""])


def api_keys_pxd(keys: list[tuple[str, int]]) -> str:
    return "\n".join([
        f"# Generated from kafka-clients {KAFKA_VERSION} by tools/generate_protocol.py; not to be edited.",
        "# Declares protocol/api_keys.hpp for Cython. thread: any.",
        "from kconsumer._core.base.cpp cimport int16_t", "", "",
        'cdef extern from "protocol/api_keys.hpp" namespace "kc" nogil:', "    cdef enum ApiKey:",
        *[f"        {api_constant(api)}" for api, _ in keys], "",
        "    const char* api_name(int16_t api_key)", ""])


def load_messages(jar: Path) -> dict[str, Message]:
    messages = {}
    with zipfile.ZipFile(jar) as archive:
        properties = archive.read("kafka/kafka-version.properties").decode()
        if f"version={KAFKA_VERSION}" not in properties.split():
            raise SystemExit(f"{jar.name} is not kafka-clients {KAFKA_VERSION}")
        for name in [api + side for api in APIS for side in ("Request", "Response")] + list(OTHERS):
            text = archive.read(f"common/message/{name}.json").decode()
            message = Parser(json.loads(re.sub(r"(?m)^\s*//.*$", "", text))).message
            mark_compared(message)
            messages[name] = message
    return messages


def generate(jar: Path) -> dict[Path, str]:
    """Every generated file, by its path below the root."""
    messages = load_messages(jar)
    files: dict[Path, str] = {}
    stems = []
    groups = [(api, [messages[api + "Request"], messages[api + "Response"]]) for api in APIS]
    for title, group in [*groups, *((name, [messages[name]]) for name in OTHERS)]:
        stem = snake_case(title)
        stems.append(stem)
        files[PROTOCOL / "messages" / f"{stem}.hpp"] = CppWriter(title, group).text()
        files[PROTOCOL / "messages" / f"{stem}.pxd"] = pxd_file(stem, group)
    files[PROTOCOL / "messages" / "all.hpp"] = all_file(list(messages.values()), stems)
    keys = sorted(((api, messages[api + "Request"].api_key) for api in APIS), key=lambda pair: pair[1])
    files[PROTOCOL / "api_keys.hpp"] = api_keys_hpp(keys)
    files[PROTOCOL / "api_keys.pxd"] = api_keys_pxd(keys)
    return files


def pinned_jar() -> Path:
    folder = ROOT / "build" / "kafka-clients"
    jar = folder / f"kafka-clients-{KAFKA_VERSION}.jar"
    if not jar.exists():
        command = ["mvn", "-q", "-B", MAVEN_COPY, f"-Dartifact=org.apache.kafka:kafka-clients:{KAFKA_VERSION}",
                   f"-DoutputDirectory={folder}"]
        try:
            subprocess.run(command, check=True, cwd=ROOT)
        except FileNotFoundError:
            raise SystemExit("mvn was not found: install Maven, or name the jar with --jar") from None
        except subprocess.CalledProcessError as error:
            raise SystemExit(f"mvn could not fetch kafka-clients {KAFKA_VERSION} (exit {error.returncode})") from None
    return jar


def stale_files(files: dict[Path, str]) -> list[Path]:
    folder = ROOT / PROTOCOL / "messages"
    present = {p.relative_to(ROOT) for pattern in ("*.hpp", "*.pxd") for p in folder.glob(pattern)}
    return sorted(present - files.keys() - {PROTOCOL / "messages" / "__init__.pxd"})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jar", type=Path, help=f"kafka-clients-{KAFKA_VERSION}.jar")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a committed file differs")
    options = parser.parse_args()
    files = generate(options.jar or pinned_jar())
    stale = stale_files(files)
    changed = [path for path, text in files.items()
               if not (ROOT / path).exists() or (ROOT / path).read_bytes() != text.encode()]
    if options.check:
        for path in [*changed, *stale]:
            print(f"{path} differs from what tools/generate_protocol.py writes", file=sys.stderr)
        return 1 if changed or stale else 0
    for path in changed:
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_bytes(files[path].encode())
    for path in stale:
        (ROOT / path).unlink()
    print(f"{len(files)} files, {len(changed)} written, {len(stale)} removed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
