"""Runs gRPC's published interop cases with grpcio: interop_client.py PORT [certificate]. Prints the cases that
passed as JSON.

The messages of grpc.testing are encoded by hand (a payload is field 2 of a message), so that no generated code is needed.
"""

import json
import queue
import sys
from typing import Callable, Iterator, Optional

import grpc

SERVICE = "/grpc.testing.TestService/"


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def chunk(field: int, body: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(body)) + body


def payload(size: int) -> bytes:
    return chunk(2, bytes(size))


def simple_request(response_size: int, size: int) -> bytes:
    return number(2, response_size) + chunk(3, payload(size))


def streaming_request(sizes: list, size: int, interval_us: int = 0) -> bytes:
    parameters = b"".join(chunk(2, number(1, each) + number(2, interval_us)) for each in sizes)
    return parameters + chunk(3, payload(size))


def read_varint(message: bytes, at: int) -> tuple:
    value = shift = 0
    while True:
        value |= (message[at] & 0x7F) << shift
        at += 1
        if message[at - 1] < 0x80:
            return value, at
        shift += 7


def payload_size(message: bytes) -> int:
    """Decodes a response whose only field is a payload, whose only field is its body."""
    for field in (1, 2):
        assert message[0] == field << 3 | 2, message[:8]
        length, at = read_varint(message, 1)
        message = message[at:]
        assert len(message) == length, (field, len(message), length)
    return len(message)


class Cases:
    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel

    def unary(self, method: str) -> grpc.UnaryUnaryMultiCallable:
        return self.channel.unary_unary(SERVICE + method)

    def empty_unary(self) -> None:
        assert self.unary("EmptyCall")(b"", timeout=30) == b""

    def large_unary(self) -> None:
        assert payload_size(self.unary("UnaryCall")(simple_request(314159, 271828), timeout=30)) == 314159

    def client_streaming(self) -> None:
        sizes = (27182, 8, 1828, 45904)
        call = self.channel.stream_unary(SERVICE + "StreamingInputCall")
        assert call(iter([chunk(1, payload(size)) for size in sizes]), timeout=30) == number(1, sum(sizes))

    def server_streaming(self) -> None:
        sizes = [31415, 9, 2653, 58979]
        call = self.channel.unary_stream(SERVICE + "StreamingOutputCall")
        assert [payload_size(each) for each in call(streaming_request(sizes, 0), timeout=30)] == sizes

    def duplex(self, requests: Iterator[bytes], timeout: float = 30) -> grpc.Call:
        return self.channel.stream_stream(SERVICE + "FullDuplexCall")(requests, timeout=timeout)

    def ping_pong(self) -> None:
        waiting: queue.Queue = queue.Queue()
        call = self.duplex(iter(waiting.get, None))
        for answer, size in ((31415, 27182), (9, 8), (2653, 1828), (58979, 45904)):
            waiting.put(streaming_request([answer], size))
            assert payload_size(next(call)) == answer
        waiting.put(None)
        assert list(call) == []

    def empty_stream(self) -> None:
        assert list(self.duplex(iter(()))) == []

    def status_code_and_message(self) -> None:
        status = number(1, 2) + chunk(2, b"test status message")
        asked = chunk(7, status)
        expect(lambda: self.unary("UnaryCall")(asked, timeout=30), "UNKNOWN", "test status message")
        expect(lambda: list(self.duplex(iter([asked]))), "UNKNOWN", "test status message")

    def special_status_message(self) -> None:
        text = "\t\ntest with whitespace\r\nand Unicode BMP \u263a and non-BMP \U0001f608\t\n"
        asked = chunk(7, number(1, 2) + chunk(2, text.encode()))
        expect(lambda: self.unary("UnaryCall")(asked, timeout=30), "UNKNOWN", text)

    def unimplemented_method(self) -> None:
        expect(lambda: self.unary("UnimplementedCall")(b"", timeout=30), "UNIMPLEMENTED")

    def unimplemented_service(self) -> None:
        call = self.channel.unary_unary("/grpc.testing.UnimplementedService/UnimplementedCall")
        expect(lambda: call(b"", timeout=30), "UNIMPLEMENTED")

    def cancel_after_begin(self) -> None:
        waiting: queue.Queue = queue.Queue()
        call = self.channel.stream_unary(SERVICE + "StreamingInputCall").future(iter(waiting.get, None))
        call.cancel()
        waiting.put(None)
        assert call.cancelled()
        assert call.code() is grpc.StatusCode.CANCELLED

    def cancel_after_first_response(self) -> None:
        waiting: queue.Queue = queue.Queue()
        waiting.put(streaming_request([31415], 27182))
        call = self.duplex(iter(waiting.get, None))
        assert payload_size(next(call)) == 31415
        call.cancel()
        waiting.put(None)
        expect(lambda: next(call), "CANCELLED")

    def timeout_on_sleeping_server(self) -> None:
        slow = streaming_request([31415], 27182, interval_us=60_000_000)
        expect(lambda: list(self.duplex(iter([slow]), timeout=0.05)), "DEADLINE_EXCEEDED")

    def client_compressed_unary(self) -> None:
        call = self.unary("UnaryCall")
        answer = call(simple_request(314159, 271828), timeout=30, compression=grpc.Compression.Gzip)
        assert payload_size(answer) == 314159


def expect(call: Callable[[], object], code: str, details: Optional[str] = None) -> None:
    try:
        call()
    except grpc.RpcError as error:
        assert error.code().name == code, (error.code(), error.details())
        assert details is None or error.details() == details, error.details()
        return
    raise AssertionError(f"no {code}")


def main(port: str, certificate: Optional[str] = None) -> None:
    if certificate is None:
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    else:
        with open(certificate, "rb") as file:
            channel = grpc.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(file.read()))
    cases = Cases(channel)
    results = {}
    for name in [each for each in vars(Cases) if each not in ("__init__", "unary", "duplex") and each[0] != "_"]:
        try:
            getattr(cases, name)()
            results[name] = "passed"
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"
    channel.close()
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
