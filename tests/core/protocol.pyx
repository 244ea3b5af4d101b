"""Owns: Python functions for tests of the codecs, the frames and the version table.

thread: A, with the GIL. Never: part of the core itself.
"""
from cpython.ref cimport PyObject

from kconsumer._core.base.cpp cimport int16_t, int32_t, string, uint8_t, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.protocol.api_keys cimport api_name as _api_name
from kconsumer._core.protocol.api_versions cimport ApiVersionsOutcome, ApiVersionTable
from kconsumer._core.protocol.frame cimport decode_response_header, encode_frame
from kconsumer._core.protocol.messages.fetch cimport FetchResponse
from kconsumer._core.protocol.messages.metadata cimport MetadataRequest, MetadataResponse
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol_faces.hpp" namespace "kc::testing":
    cdef cppclass Face:
        const char* name
        int16_t min_version
        int16_t max_version
        object decode(Reader&, int16_t)
        bint encode(PyObject*, int16_t, Writer&) except False
        bint transcode(Reader&, int16_t, Writer&)
        bint refused(PyObject*, int16_t, const char**) except False
        void sample(int16_t, Writer&)
        int32_t header_version(int16_t)
        int32_t response_header_version(int16_t)

    const vector[Face]& faces()
    object primitives(PyObject*, bint, Writer&)


class WireFormatError(ValueError):
    """The error of Reader.status(): its ``code`` and the ``field`` that it names."""

    def __init__(self, int code, str detail, str field):
        super().__init__(detail)
        self.code = code
        self.field = field


cdef const Face* find(str name) except NULL:
    cdef size_t i
    cdef string wanted = name.encode()
    for i in range(faces().size()):
        if wanted == faces()[i].name:
            return &faces()[i]
    raise KeyError(name)


cdef bytes written(Writer& writer):
    return (<const char*>writer.data())[:writer.size()] if writer.size() else b""


cdef object failure(Reader& reader):
    cdef Status status = reader.status()
    return WireFormatError(status.code, status.detail.c_str().decode(), reader.error_field().decode())


def messages() -> dict:
    """Return {message name: (lowest version, highest version)}."""
    cdef size_t i
    return {faces()[i].name.decode(): (faces()[i].min_version, faces()[i].max_version)
            for i in range(faces().size())}


def decode(str name, int16_t version, bytes data) -> tuple:
    """Return the message as a dict, and the number of unread bytes.

    Raises:
        WireFormatError: the bytes are not a message of this version.
    """
    cdef Reader reader = Reader(<const uint8_t*><const char*>data, len(data))
    values = find(name).decode(reader, version)
    if not reader.ok():
        raise failure(reader)
    return values, reader.remaining()


def encode(str name, int16_t version, dict values) -> bytes:
    """Return a message with the values of a dict, encoded.

    Raises:
        ValueError: a value is too long for the wire format.
    """
    cdef Writer writer
    find(name).encode(<PyObject*>values, version, writer)
    if not writer.ok():
        raise ValueError("a value is too long for the wire")
    return written(writer)


def transcode(str name, int16_t version, bytes data) -> bytes:
    """Decode a message and encode it again.

    Raises:
        WireFormatError: the bytes are not a message of this version.
    """
    cdef Reader reader = Reader(<const uint8_t*><const char*>data, len(data))
    cdef Writer writer
    if not find(name).transcode(reader, version, writer):
        raise failure(reader)
    return written(writer)


def sample(str name, int16_t version) -> bytes:
    """Return an encoded message with all fields set, nested fields too."""
    cdef Writer writer
    find(name).sample(version, writer)
    return written(writer)


def refused_field(str name, int16_t version, dict values):
    """Return the field that can_encode() refuses in this version, or None."""
    cdef const char* field = NULL
    find(name).refused(<PyObject*>values, version, &field)
    return None if field == NULL else field.decode()


def header_versions(str name, int16_t version) -> tuple:
    """Return the header versions of a request and of its response.

    A message without a header, or without a response, has -1.
    """
    return find(name).header_version(version), find(name).response_header_version(version)


def through_the_wire(dict values, bint flexible) -> tuple:
    """Encode and decode types that no message has (see Primitives).

    Returns:
        The bytes and the decoded values.
    """
    cdef Writer writer
    back = primitives(<PyObject*>values, flexible, writer)
    return written(writer), back


def api_name(int16_t api_key) -> str:
    return _api_name(api_key).decode()


def metadata_frame(int16_t version, int16_t header_version, int32_t correlation_id, bytes client_id) -> bytes:
    """Return a whole frame with a MetadataRequest for all topics."""
    cdef Writer writer
    cdef MetadataRequest request
    cdef string client = client_id
    request.topics.set_null()
    encode_frame(writer, 3, version, header_version, correlation_id, client, request)
    if not writer.ok():
        raise ValueError("a value is too long for the wire")
    return written(writer)


def response_header(bytes data, int16_t header_version) -> tuple:
    """Return the correlation id, and the number of body bytes after it.

    Raises:
        WireFormatError: the header is cut off.
    """
    cdef Reader reader = Reader(<const uint8_t*><const char*>data, len(data))
    cdef int32_t correlation_id = decode_response_header(reader, header_version)
    if not reader.ok():
        raise failure(reader)
    return correlation_id, reader.remaining()


cdef class VersionTable:
    """An ApiVersionTable."""
    cdef ApiVersionTable table

    def accept(self, bytes body, int16_t version) -> tuple:
        """Return (outcome, code, detail); the outcome is 0 ready, 1 ask for v0, 2 refused."""
        cdef Status status
        cdef ApiVersionsOutcome outcome = self.table.accept(<const uint8_t*><const char*>body, len(body), version,
                                                            &status)
        return <int>outcome, status.code, status.detail.c_str().decode()

    def known(self) -> bool:
        return self.table.known()

    def clear(self) -> None:
        self.table.clear()

    def range(self, int16_t api_key) -> tuple:
        return self.table.range(api_key).min, self.table.range(api_key).max

    def pick(self, int16_t api_key, int16_t low, int16_t high) -> int:
        return self.table.pick(api_key, low, high)

    def unsupported(self, int16_t api_key, int16_t low, int16_t high, bytes broker) -> tuple:
        cdef Status status = self.table.unsupported(api_key, low, high, broker)
        return status.code, status.detail.c_str().decode()


def time_fetch_decode(bytes data, int16_t version, int rounds) -> int:
    """Decode a FetchResponse ``rounds`` times into one struct, for a timing.

    Returns:
        The number of partitions in the response.
    """
    cdef Reader reader
    cdef FetchResponse response
    cdef size_t i, partitions = 0
    cdef const uint8_t* start = <const uint8_t*><const char*>data
    cdef size_t length = len(data)
    with nogil:
        for _ in range(rounds):
            reader = Reader(start, length)
            response.decode(reader, version)
        for i in range(response.responses.size()):
            partitions += response.responses[i].partitions.size()
    if not reader.ok():
        raise failure(reader)
    return partitions


def time_metadata_decode(bytes data, int16_t version, int rounds) -> int:
    """Decode a MetadataResponse ``rounds`` times into one struct, for a timing.

    Returns:
        The number of partitions in the response.
    """
    cdef Reader reader
    cdef MetadataResponse response
    cdef size_t i, partitions = 0
    cdef const uint8_t* start = <const uint8_t*><const char*>data
    cdef size_t length = len(data)
    with nogil:
        for _ in range(rounds):
            reader = Reader(start, length)
            response.decode(reader, version)
        for i in range(response.topics.size()):
            partitions += response.topics[i].partitions.size()
    if not reader.ok():
        raise failure(reader)
    return partitions
