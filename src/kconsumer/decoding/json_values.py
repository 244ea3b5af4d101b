"""Json: JSON texts as typed columns."""

from __future__ import annotations

from typing import Any

from kconsumer._core.values.value_decoder import DecodedValues, ValueDecoder
from kconsumer._core.values.value_source import ValueSource
from kconsumer.decoding.decoder import Decoder
from kconsumer.decoding.framing import read_framing
from kconsumer.decoding.plan import UNITS, flatten, projected, read_type


class Json(Decoder):
    """Decodes JSON texts into typed columns, by a schema.

    A missing field and null are null; unknown fields are skipped, though they must be valid JSON; of equal keys the
    last one counts. A row that does not fit the schema becomes null, and is in ``errors``.

    Args:
        schema: an Arrow schema or type (any object with ``__arrow_c_schema__``), a dict of field name to type, or a
            type's name: ``int64``, ``decimal(10, 2)``, ``timestamp[ms, UTC]``, ``list<string>``,
            ``map<string, int64>``, ``struct<a: int64>``, ``json`` (a field's own text).
        framing: "none"; "confluent": five bytes come first (0 and the schema's id); "skip=n": n bytes come first.
        epoch: "s", "ms", "us" or "ns": numbers in timestamp fields count this unit since 1970. Default: such numbers
            are errors.

    Raises:
        TypeError, ValueError: the schema, the framing or the epoch is not one of these.
    """

    __slots__ = ("_core",)

    _core: ValueDecoder

    def __init__(self, schema: Any, *, framing: str = "none", epoch: str | None = None) -> None:
        if epoch is not None and epoch not in UNITS:
            raise ValueError(f"invalid epoch {epoch!r}: expected s, ms, us or ns")
        super().__init__(read_type(schema), framing=framing, epoch=epoch)
        self._set(_core=ValueDecoder(flatten(self.type), read_framing(framing), -1 if epoch is None else UNITS[epoch]))

    def select(self, columns: tuple[str, ...]) -> Json:
        """The decoder of these fields only, in their order.

        Raises:
            ValueError: the schema has no field of that name.
        """
        return Json(projected(self.type, tuple(columns)), **self.options)

    def _decode(self, source: ValueSource) -> DecodedValues:
        return self._core.decode_json(source)
