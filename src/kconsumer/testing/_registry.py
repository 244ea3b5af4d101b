"""A schema registry for the demo: it serves fixed schemas over HTTP.

Owns: DemoRegistry. Threads: one that accepts, and one for each connection. Never: registers a schema.
"""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from kconsumer.testing._served import Served

_UNKNOWN_SUBJECT: Final = 40401
_UNKNOWN_VERSION: Final = 40402
_UNKNOWN_SCHEMA: Final = 40403


class Registered(NamedTuple):
    """The only version of a subject. `serialized` is its text for requests with `format=serialized`."""

    id: int
    subject: str
    kind: str
    text: str
    serialized: str | None = None


class DemoRegistry(Served):
    """A context manager that serves schemas, read-only, on the loopback interface.

    Args:
        schemas: the schemas, one for each subject.
        port: the port; 0: a free one.

    Raises:
        OSError: the port is in use.
    """

    def __init__(self, schemas: list[Registered], port: int = 0) -> None:
        server = ThreadingHTTPServer(("127.0.0.1", port), type("Handler", (_Handler,), {"schemas": schemas}))
        server.daemon_threads = True
        super().__init__(server, "kconsumer-demo-registry")

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"http://{self.address}"


class _Handler(BaseHTTPRequestHandler):
    schemas: list[Registered]

    def do_GET(self) -> None:
        split = urlsplit(self.path)
        status, answer = self._answer([unquote(part) for part in split.path.strip("/").split("/")],
                                      parse_qs(split.query).get("format") == ["serialized"])
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, path: list[str], serialized: bool) -> tuple[int, Any]:
        match path:
            case ["subjects"]:
                return 200, [schema.subject for schema in self.schemas]
            case ["schemas", "ids", number]:
                found = [schema for schema in self.schemas if str(schema.id) == number]
                return (200, _body(found[0], serialized)) if found else _error(_UNKNOWN_SCHEMA, "schema")
            case ["subjects", subject, "versions", *version]:
                found = [schema for schema in self.schemas if schema.subject == subject]
                if not found:
                    return _error(_UNKNOWN_SUBJECT, "subject")
                if not version:
                    return 200, [1]
                if version[0] not in ("1", "latest", "-1"):
                    return _error(_UNKNOWN_VERSION, "version")
                return 200, {"subject": subject, "version": 1, "id": found[0].id, **_body(found[0], serialized)}
        return _error(404, "resource")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Write nothing: the demo's output is its own."""


def _body(schema: Registered, serialized: bool) -> dict[str, str]:
    text = schema.serialized if serialized and schema.serialized is not None else schema.text
    return {"schema": text, "schemaType": schema.kind}


def _error(code: int, what: str) -> tuple[int, dict[str, Any]]:
    return 404, {"error_code": code, "message": f"{what} not found"}
