"""Checks wire.py against the golden bytes: `python wire_test.py VECTORS [--write]`. Needs the standard library only."""

import json
import sys

from galatea_worker import wire


def encoded():
    """What this side writes."""
    outputs = [(0, 11, (2,), wire.INLINE, 0, b"12345678"), (1, 1, (1, 3), 4, 64, 3)]
    responses = [("error", 3, "bad"), ("outputs", '{"p": 1}', outputs)]
    return {
        "result": wire.encode_result(7, [3], responses, (1, 2**33, 3)).hex(),
        "failure": wire.encode_batch_failure(7, [], "ValueError: x", (1, 2, 3)).hex(),
        "ask": wire.encode_ask(7, [4096, 2**34]).hex(),
        "response": wire.encode_response(7, 1, False, ("outputs", "", outputs), 9).hex(),
        "finalResponse": wire.encode_response(7, 1, True, None, 0).hex(),
        "askOfResponse": wire.encode_ask(7, [4096], 9).hex(),
        "released": wire.encode_released([1, 2, 3]).hex(),
    }


def check(vectors):
    """Raises AssertionError where this side reads or writes anything else."""
    for name, hexadecimal in encoded().items():
        assert vectors[name] == hexadecimal, name
    frame = memoryview(bytes.fromhex(vectors["execute"]))
    loans, spaces, requests, inline_offset = wire.decode_execute(frame)
    assert loans == [(3, 1, 5 * 2**32, 2**20)], loans
    assert spaces == [(4, 4096, 512)], spaces
    first, second = requests
    assert (first.request_id, first.correlation, first.flags, first.timeout_us) == ("ü", 42, 3, 2**40)
    assert (first.requested, first.parameters) == ((1,), '{"a":1}')
    assert first.inputs == [(0, 11, (1, 2), wire.INLINE, 0, 8), (1, 11, (1,), 0, 64, 4)], first.inputs
    assert (second.request_id, second.correlation, second.requested, second.parameters) == ("", "seq", None, "")
    assert second.inputs == [(0, 13, (), wire.INLINE, 16, 3)], second.inputs
    inline = bytes(frame[inline_offset:])
    assert inline[:8] == bytes(range(1, 9)) and inline[16:19] == bytes((9, 8, 7)), inline
    assert wire.decode_space(memoryview(bytes.fromhex(vectors["space"]))) == ([(4, 4096, 512)], "")
    of_response = memoryview(bytes.fromhex(vectors["spaceOfResponse"]))
    assert wire.HEADER.unpack_from(of_response)[4] >> 1 == 9
    assert wire.decode_space(of_response) == ([(4, 4096, 512)], "")
    assert wire.decode_space(memoryview(bytes.fromhex(vectors["noSpaceOfResponse"]))) == (None, "full")
    credit = memoryview(bytes.fromhex(vectors["credit"]))
    assert wire.HEADER.unpack_from(credit) == (16, wire.CREDIT, 8, 7, 1)


def main():
    """Checks, or writes this side's half anew."""
    with open(sys.argv[1], encoding="utf-8") as file:
        vectors = json.load(file)
    if "--write" in sys.argv:
        vectors.update(encoded())
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            json.dump(vectors, file, indent=2)
            file.write("\n")
    check(vectors)


if __name__ == "__main__":
    main()
