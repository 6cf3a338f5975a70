"""TensorFlow Serving's REST API on a local port, for the archive's own script.

Other tenants cannot connect to the port (see `own_listener`). If the kernel cannot restrict TCP, only requests from processes of this
process's user are served. Tenants have different users if the machine supports that.
"""

from __future__ import annotations

import json
import os
import re
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import unquote

from galatea_worker import tenant
from google.protobuf import json_format

from . import json_response, json_text
from .calls import Call
from .errors import ServingError

if TYPE_CHECKING:
    from typing import Any

    from .models import Models

_PREDICT = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d{1,18}))?:(classify|regress|predict)", re.IGNORECASE)
_STATUS = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d{1,18}))?(/metadata)?", re.IGNORECASE)
# Maximum number of concurrent connections; further connections wait.
_CONNECTIONS_MAX = 32
_BODY_BYTES_MAX = 1 << 30
_SECONDS_WITHOUT_PROGRESS = 60


class RestListener(ThreadingHTTPServer):
    """An HTTP server that runs until the process ends. Raises OSError if no port can be opened."""

    daemon_threads = True
    block_on_close = False
    address_family = socket.AF_INET

    def __init__(self, models: Models) -> None:
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        given = tenant.own_listener()
        self.socket.close()
        # A tenant is not allowed to open ports. Its process has a listener that was opened before the confinement.
        self.socket = socket.create_server(self.server_address) if given is None else given
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address
        self.models = models
        self._places = threading.BoundedSemaphore(_CONNECTIONS_MAX)
        threading.Thread(target=self.serve_forever, name="rest", daemon=True).start()

    @property
    def base(self) -> str:
        """The URL to which the API's paths are appended."""
        return "http://localhost:%d" % self.server_port

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Returns whether the client runs as this process's user."""
        return _user_of(client_address, self.server_address) == os.getuid()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handles a connection in a new thread, once a slot is free."""
        self._places.acquire()
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handles the single request of a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()


def _user_of(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """Returns the user of the process at the other end of a local connection."""
    ends = ["%08X:%04X" % (struct.unpack("=I", socket.inet_aton(host))[0], port) for host, port in (client, server)]
    with open("/proc/self/net/tcp", encoding="ascii") as table:
        for line in table:
            fields = line.split(None, 8)
            if fields[1:3] == ends:
                return int(fields[7])
    return None


class _Handler(BaseHTTPRequestHandler):
    server: RestListener
    timeout = _SECONDS_WITHOUT_PROGRESS

    def do_POST(self) -> None:
        """Handles predict, classify and regress requests."""
        found = _PREDICT.fullmatch(self.path)
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > _BODY_BYTES_MAX:
            self._refuse(411, "a request needs a Content-Length of at most %d bytes" % _BODY_BYTES_MAX)
            return
        body = self.rfile.read(int(length))
        if found is None:
            self._refuse(400, "Malformed request: POST %s" % self.path)
            return
        name, version, method = found.groups()
        try:
            document = json_text.first_value(json_text.text_of(body))
            servable = self.server.models.find(unquote(name), None if version is None else int(version))
            result = Call(servable, method.lower(), document).run()
        except ServingError as error:
            self._refuse(error.status, str(error))
            return
        self._send(200, result)

    def do_GET(self) -> None:
        """Handles requests for model versions and signatures."""
        found = _STATUS.fullmatch(self.path)
        if found is None:
            self._refuse(400, "Malformed request: GET %s" % self.path)
            return
        name, version, metadata = found.groups()
        name, version = unquote(name), None if version is None else int(version)
        try:
            versions = self.server.models.versions(name, version)
            about = self._metadata(name, versions[0]) if metadata else _states(versions)
        except ServingError as error:
            self._refuse(error.status, str(error))
            return
        self._send(200, json.dumps(about, indent=1).encode("utf-8"))

    def _metadata(self, name: str, version: int) -> dict[str, Any]:
        signatures = json_format.MessageToDict(
            self.server.models.find(name, version).metadata(), preserving_proto_field_name=True
        )
        return {
            "model_spec": {"name": name, "signature_name": "", "version": str(version)},
            "metadata": {"signature_def": signatures},
        }

    def _refuse(self, status: int, message: str) -> None:
        self._send(status, json_response.error(message))

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Does nothing: requests of the script are not logged."""


def _states(versions: list[int]) -> dict[str, Any]:
    ready = {"state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    return {"model_version_status": [{"version": str(version), **ready} for version in versions]}
