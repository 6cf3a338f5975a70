"""Attempts on sockets, ports and System V memory, which reach other processes without files."""

import ctypes
import json
import socket

from .attempts import Attempts, KeptOff, any_of, checked, libc

attempts = Attempts()


def ask(connection, text):
    connection.settimeout(5)
    connection.sendall(text.encode())
    answer = connection.recv(4096).decode(errors="replace")
    if not answer.startswith("HTTP/1.1 2"):
        raise KeptOff(answer[:60])


def ask_socket(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        ask(connection, "GET /models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")


@attempts.named("list tenants on the container's socket")
def _(targets):
    return any_of(targets["sockets"], ask_socket)


@attempts.named("create a model through the platform's port")
def _(targets):
    body = json.dumps({"ModelName": "stolen", "ExecutionRoleArn": "arn:aws:iam::000000000000:role/x"})
    head = (
        "POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-Amz-Target: SageMaker.CreateModel\r\nConnection: close\r\n"
        % targets["port"]
    )
    head += "Content-Type: application/x-amz-json-1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
    with socket.create_connection(("127.0.0.1", targets["port"]), 5) as connection:
        ask(connection, head + body)


@attempts.named("connect to a service of this machine")
def _(targets):
    socket.create_connection(("127.0.0.1", targets["service"]), 5).close()


@attempts.named("listen on a port")
def _(targets):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()


@attempts.named("listen on a port that no bind chose")
def _(targets):
    with socket.socket() as server:
        server.listen()


@attempts.named("reach a datagram service of this machine")
def _(targets):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", ("127.0.0.1", targets["service"]))


@attempts.named("read packets")
def _(targets):
    kinds = [(socket.AF_PACKET, socket.SOCK_RAW, 0), (socket.AF_INET, socket.SOCK_RAW, 1)]
    return any_of(kinds, lambda kind: socket.socket(*kind).close())


@attempts.named("connect to another tenant's abstract socket")
def _(targets):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0galatea-victim")


@attempts.named("open another tenant's shared memory")
def _(targets):
    libc.shmget.restype = ctypes.c_int
    checked(libc.shmget(0x6761, 0, 0))
