"""tritonclient over TLS: tls_client.py PORT ROOTS [KEY CERTIFICATE]. Prints "live", or the status of its failure."""

import sys
from typing import Optional

import tritonclient.grpc as grpc_client
from tritonclient.utils import InferenceServerException


def main(port: str, roots: str, key: Optional[str] = None, certificate: Optional[str] = None) -> None:
    client = grpc_client.InferenceServerClient(
        f"localhost:{port}", ssl=True, root_certificates=roots, private_key=key, certificate_chain=certificate
    )
    try:
        print("live" if client.is_server_live(client_timeout=20) else "not live")
    except InferenceServerException as error:
        print(error.status())


if __name__ == "__main__":
    main(*sys.argv[1:])
