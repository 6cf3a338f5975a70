"""Checks wire.py against the golden bytes: `python wire_test.py VECTORS [--write]`. Needs the standard library only."""

from __future__ import annotations

import json
import struct
import sys

from galatea_worker import call_wire, metric_wire, wire

CALL = {
    "execution": 7,
    "model": "m",
    "version": "2",
    "id": "ü",
    "correlation": [str(2**64 - 1)],
    "flags": 3,
    "timeout": 2**40,
    "outputs": ["OUT"],
    "parameters": '{"a": 1}',
    "names": ["A", "B"],
}
CONTROL = {
    "model": "m",
    "version": "",
    "config": "{}",
    "dependents": True,
    "files": ["file:1/model.py", "file:1/empty"],
    "lengths": [5, 0],
}
# The order must be the same as in WIRE.md and on the server's side.
KINDS = (
    wire.LOAD,
    wire.COMPLETE,
    wire.INITIALIZE,
    wire.EXECUTE,
    wire.SPACE,
    wire.FINALIZE,
    wire.CANCEL,
    wire.CREDIT,
    wire.CALL_RESPONSE,
    wire.CALL_SPACE,
    wire.CONTROL_RESULT,
    wire.METRIC_RESULT,
    wire.HELLO,
    wire.LOADED,
    wire.COMPLETED,
    wire.INITIALIZED,
    wire.RESULT,
    wire.SPACE_REQUEST,
    wire.RELEASED,
    wire.LOG,
    wire.FINALIZED,
    wire.FAILED,
    wire.RESPONSE_SENT,
    wire.CALL,
    wire.CALL_SPACE_REQUEST,
    wire.CALL_CANCEL,
    wire.CALL_CREDIT,
    wire.CONTROL,
    wire.METRIC_FAMILY,
    wire.METRIC,
    wire.METRIC_VALUE,
    wire.METRICS_RELEASED,
    wire.RAISED,
    wire.ZYGOTE_FORK,
    wire.ZYGOTE_READY,
    wire.ZYGOTE_FORKED,
    wire.ZYGOTE_FORK_FAILED,
)
LIMITS = (
    wire.FRAME_BYTES_MAX,
    wire.RESPONSE_FRAME_BYTES_MAX,
    wire.TEXT_BYTES_MAX,
    wire.NAMES_MAX,
    wire.PARAMETERS_MAX,
    wire.OUTPUTS_MAX,
)


def encoded() -> dict[str, str]:
    """Returns the frames that the Python side encodes, in hexadecimal digits."""
    outputs = [(0, 11, (2,), wire.INLINE, 0, b"12345678"), (1, 1, (1, 3), 4, 64, 3)]
    responses = [("error", 3, "bad"), ("outputs", '{"p": 1}', outputs)]
    return {
        "result": wire.encode_result(7, [3], responses, (1, 2**33, 3)).hex(),
        "failure": wire.encode_batch_failure(7, [], "ValueError: x", (1, 2, 3)).hex(),
        "spaceRequest": wire.encode_space_request(7, [4096, 2**34]).hex(),
        "response": wire.encode_response(7, 1, False, ("outputs", "", outputs), 9).hex(),
        "finalResponse": wire.encode_response(7, 1, True, None, 0).hex(),
        "spaceRequestOfResponse": wire.encode_space_request(7, [4096], 9).hex(),
        "released": wire.encode_released([1, 2, 3]).hex(),
        "call": call_wire.encode_message(wire.CALL, 5, call_wire.STREAMED, json.dumps(CALL).encode(), outputs).hex(),
        "callSpaceRequest": call_wire.encode_space_request(5, [4096, 2**34]).hex(),
        "callCancel": call_wire.encode_cancel(5).hex(),
        "callCredit": call_wire.encode_credit(5, 8).hex(),
        "control": call_wire.encode_control(6, call_wire.LOAD, json.dumps(CONTROL).encode(), [b"x = 1", b""]).hex(),
        "kinds": struct.pack("<%dH" % len(KINDS), *KINDS).hex(),
        "limits": struct.pack("<6Q", *LIMITS).hex(),
        "metricFamily": metric_wire.encode_family(5, 9, 2, "m", "ü").hex(),
        "metric": metric_wire.encode_metric(6, 3, 9, {"a": "ü", "b": ""}, (0.5, 1.0)).hex(),
        "metricValue": metric_wire.encode_value(7, 3).hex(),
        "metricsReleased": metric_wire.encode_released(9).hex(),
    }


def check(vectors: dict[str, str]) -> None:
    """Raises AssertionError if the Python side encodes or decodes a frame differently from the vectors."""
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
    space = memoryview(bytes.fromhex(vectors["callSpace"]))
    assert wire.HEADER.unpack_from(space)[1:4] == (wire.CALL_SPACE, 1, 5)
    assert wire.decode_space(space) == ([(4, 4096, 512)], "")
    assert wire.decode_space(memoryview(bytes.fromhex(vectors["noCallSpace"]))) == (None, "full")
    response = memoryview(bytes.fromhex(vectors["callResponse"]))
    assert wire.HEADER.unpack_from(response)[1:] == (wire.CALL_RESPONSE, 2, 5, 0)
    text, loans, tensors, inline_offset = call_wire.decode_message(response)
    assert text == {"names": ["OUT", "LARGE"], "parameters": ""}, text
    assert loans == call_wire.decode_loans(response) == [(3, 1, 5 * 2**32, 2**20)], loans
    assert tensors == [(0, 11, (1, 2), wire.INLINE, 0, 8), (1, 1, (3,), 0, 64, 3)], tensors
    assert bytes(response[inline_offset:]) == bytes(range(1, 9))
    failed = memoryview(bytes.fromhex(vectors["callFailed"]))
    assert wire.HEADER.unpack_from(failed)[1:] == (wire.CALL_RESPONSE, 0, 5, call_wire.LAST)
    assert call_wire.decode_message(failed)[:3] == ({"code": 4, "message": "full"}, [], [])
    response = memoryview(bytes.fromhex(vectors["metricCells"]))
    request_id, error, body = metric_wire.decode_result(response)
    assert wire.HEADER.unpack_from(response)[1] == wire.METRIC_RESULT
    assert (request_id, error, metric_wire.decode_cells(body)) == (6, None, (2**33, 512, 7, (0.5, 1.0))), body
    request_id, error, body = metric_wire.decode_result(memoryview(bytes.fromhex(vectors["metricNumber"])))
    assert (request_id, error, metric_wire.decode_value(body)) == (7, None, 1.5)
    assert metric_wire.decode_result(memoryview(bytes.fromhex(vectors["metricCreated"]))) == (5, None, b"")
    assert metric_wire.decode_result(memoryview(bytes.fromhex(vectors["metricRejected"])))[:2] == (5, "full")
    assert call_wire.decode_control_result(memoryview(bytes.fromhex(vectors["controlResult"]))) == {"ready": True}


def main() -> None:
    """Checks the vectors, or writes the vectors that the Python side encodes."""
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
