"""Tests InvokeEndpointWithResponseStream with boto3: a decoupled model, and botocore's reader of event streams.

python streams.py DIRECTORY

The directory is the platform's. It distinguishes the platform's containers from those of other platforms on this machine.
"""

import glob
import json
import os
import signal
import sys

from botocore.exceptions import ClientError, EventStreamError
from deployments import deployed, removed
from statements import finish, proven, refused, runtime

ENDPOINT = "conformance-streams"
MODEL = """
import os
import signal
import threading
import numpy as np
import triton_python_backend_utils as pb_utils

cancelled = threading.Event()

def answer(text):
    return pb_utils.InferenceResponse([pb_utils.Tensor("TOKEN", np.array([text], dtype=object))])

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.tell, args=(request,), daemon=True).start()

    def tell(self, request):
        sender = request.get_response_sender()
        final = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
        word = pb_utils.get_input_tensor_by_name(request, "WORD").as_numpy()[0].decode()
        if word == "endless":
            count = 0
            while not sender.is_cancelled():
                sender.send(answer("%d" % count))
                count += 1
            cancelled.set()
        elif word == "cancelled":
            sender.send(answer(str(cancelled.wait(20))))
        elif word == "silent":
            sender.send(answer("first"))
            threading.Event().wait(30)
        elif word == "killed":
            sender.send(answer("first"))
            os.kill(os.getpid(), signal.SIGKILL)
        elif word == "wrong":
            sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("that is no word")))
        else:
            for letter in word:
                sender.send(answer(letter))
        sender.send(flags=final)
"""
CONFIG = """
name: "model"
backend: "python"
model_transaction_policy { decoupled: true }
input [ { name: "WORD" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "TOKEN" data_type: TYPE_STRING dims: [ 1 ] } ]
"""


def ask(word, **more):
    body = json.dumps({"inputs": [{"name": "WORD", "shape": [1], "datatype": "BYTES", "data": [word]}]})
    return runtime.invoke_endpoint_with_response_stream(
        EndpointName=ENDPOINT, ContentType="application/json", Body=body, **more
    )


def parts(reply):
    for event in reply["Body"]:
        yield event["PayloadPart"]["Bytes"]


def tokens(pieces):
    """Returns the documents of Triton's events, which chunks may split anywhere."""
    rest = b""
    for piece in pieces:
        *events, rest = (rest + piece).split(b"\n\n")
        for event in events:
            answer = json.loads(event.removeprefix(b"data: "))
            yield answer["error"] if "error" in answer else answer["outputs"][0]["data"][0]


def container_pid():
    """Returns the process id of the endpoint's only container, by its command line."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        named = any(word.startswith(b"--id=" + ENDPOINT.encode() + b"/") for word in words)
        if named and b"--data=" + os.path.join(sys.argv[1], "data").encode() in words:
            return int(path.split("/")[2])
    raise AssertionError("no container runs for the endpoint")


def main():
    deployed(ENDPOINT, {"model/config.pbtxt": CONFIG, "model/1/model.py": MODEL})
    reply = ask("hello", CustomAttributes="c000b4f9")
    proven(
        "the response has its content type",
        reply["ContentType"] == "text/event-stream; charset=utf-8",
        reply["ContentType"],
    )
    proven("the response names the variant", reply["InvokedProductionVariant"] == "AllTraffic")
    found = "".join(tokens(parts(reply)))
    proven("the stream has all tokens in order", found == "hello", found)

    reply = ask("endless")
    endless = tokens(parts(reply))
    found = [next(endless) for _ in range(3)]
    proven("an endless stream starts", found == ["0", "1", "2"], str(found))
    reply["Body"].close()
    found = list(tokens(parts(ask("cancelled"))))
    proven("a client's disconnect cancels the request in the model", found == ["True"], str(found))

    refused(
        "an error before the first token is an error response", "ModelError", "that is no word", lambda: ask("wrong")
    )
    refused(
        "a missing variant is an error", "ValidationError", "Variant b not found", lambda: ask("x", TargetVariant="b")
    )
    other = lambda: runtime.invoke_endpoint_with_response_stream(EndpointName="nobody", Body=b"")
    refused("a missing endpoint is an error", "ValidationError", "Endpoint nobody of account", other)

    found = list(tokens(parts(ask("killed"))))
    told = len(found) == 2 and found[0] == "first" and "first" not in found[1]
    proven("a model process that dies during its response is reported in Triton's events", told, str(found))
    found = "".join(tokens(parts(ask("again"))))
    proven("the next process serves requests", found == "again", found)
    reply = ask("silent")
    pieces = parts(reply)
    found = next(tokens(pieces))
    proven("the first token of a stream that hangs", found == "first", found)
    os.kill(container_pid(), signal.SIGKILL)
    try:
        rest = list(pieces)
        proven("the death of a container is reported", False, str(rest))
    except EventStreamError as error:
        told = error.response["Error"]
        proven("the death of a container is reported", told["Code"] == "ModelStreamError", str(told))
    removed(ENDPOINT)
    finish()


try:
    main()
except ClientError as error:
    proven("no other request fails", False, str(error))
    finish()
