"""Parses protobuf messages to lists of fields, so that a few fields of a file can be changed and all others are preserved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galatea_worker.failures import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {FIXED64: 8, FIXED32: 4}
_VARINT_BYTES_MAX = 10
_NUMBER_MAX = 2**64


class Message:
    """The fields of one message, in order. The content of a field is parsed when it is first read as a message."""

    __slots__ = ("_fields",)

    def __init__(self, data: bytes | memoryview = b"") -> None:
        """Parses a message. Raises ModelError for an invalid one."""
        self._fields = list(_fields(memoryview(data)))

    def messages(self, number: int) -> list[Message]:
        """Returns the nested messages in the fields with this number. Changing them changes this message."""
        found = []
        for index, (own, kind, value) in enumerate(self._fields):
            if own != number:
                continue
            if not isinstance(value, Message):
                if kind != BYTES:
                    raise ModelError("field %d is not a message" % number)
                value = Message(value)
                self._fields[index] = (own, kind, value)
            found.append(value)
        return found

    def text(self, number: int) -> str:
        """Returns the text of the last field with this number; "" if there is none."""
        value = self._last(number, BYTES)
        try:
            return "" if value is None else bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            raise ModelError("field %d is not a string" % number) from None

    def number(self, number: int, default: int) -> int:
        """Returns the value of the last field with this number as a signed number; `default` if there is none."""
        value = self._last(number, VARINT)
        if value is None:
            return default
        return value - _NUMBER_MAX if value >= _NUMBER_MAX // 2 else value

    def has(self, number: int) -> bool:
        """Returns whether there is a field with this number."""
        return any(own == number for own, _, _ in self._fields)

    def set_text(self, number: int, text: str) -> None:
        """Replaces all fields with this number by one text."""
        self.clear(number)
        self._fields.append((number, BYTES, text.encode("utf-8")))

    def set_number(self, number: int, value: int) -> None:
        """Replaces all fields with this number by one number."""
        self.clear(number)
        self._fields.append((number, VARINT, value % _NUMBER_MAX))

    def clear(self, number: int) -> None:
        """Removes all fields with this number."""
        self._fields = [field for field in self._fields if field[0] != number]

    def remove(self, number: int, gone: list[Message]) -> None:
        """Removes these nested messages from the fields with this number."""
        self._fields = [
            field for field in self._fields if field[0] != number or not any(field[2] is one for one in gone)
        ]

    def encode(self) -> bytes:
        """Returns the encoded message."""
        out = bytearray()
        for number, kind, value in self._fields:
            _write_varint(out, number << 3 | kind)
            if kind == VARINT:
                _write_varint(out, value)
                continue
            if isinstance(value, Message):
                value = value.encode()
            if kind == BYTES:
                _write_varint(out, len(value))
            out += value
        return bytes(out)

    def _last(self, number: int, wanted: int) -> memoryview | int | None:
        value = None
        for own, kind, found in self._fields:
            if own == number:
                if kind != wanted:
                    raise ModelError("field %d is of wire type %d, and not %d" % (number, kind, wanted))
                value = found
        return value


def _fields(data: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise ModelError("a field has the number 0")
        if kind == VARINT:
            value, at = _read_varint(data, at)
            yield number, kind, value
            continue
        if kind == BYTES:
            size, at = _read_varint(data, at)
        elif kind in _FIXED_BYTES:
            size = _FIXED_BYTES[kind]
        else:
            raise ModelError("field %d is of wire type %d" % (number, kind))
        if size > len(data) - at:
            raise ModelError("field %d has %d bytes where %d are left" % (number, size, len(data) - at))
        yield number, kind, data[at : at + size]
        at += size


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    for place in range(at, min(at + _VARINT_BYTES_MAX, len(data))):
        byte = data[place]
        value |= (byte & 127) << shift
        if byte < 128:
            return value % _NUMBER_MAX, place + 1
        shift += 7
    raise ModelError("a number is cut off")


def _write_varint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
