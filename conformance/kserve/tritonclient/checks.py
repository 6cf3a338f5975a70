"""The real tritonclient.http against a server: `checks.py PORT main|control` prints {check: what the client made of it} as JSON.

A result holds only what a user sees: arrays with their datatype and shape, parsed answers, exceptions with their text.
"""

import json
import sys

import ml_dtypes
import numpy as np
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

CHECKS = {"main": [], "control": []}


def check(fixture="main"):
    def add(function):
        CHECKS[fixture].append(function)
        return function

    return add


def seen(value):
    """An array as JSON can hold it: every element as text."""
    if value is None:
        return None
    elements = [repr(element) if isinstance(element, bytes) else str(element) for element in value.reshape(-1)]
    return {"dtype": str(value.dtype), "shape": list(value.shape), "elements": elements}


def tensor(name, array, datatype, binary=True):
    made = http.InferInput(name, list(array.shape), datatype)
    made.set_data_from_numpy(array, binary_data=binary)
    return made


def pair(binary=True):
    a = np.array([1, 2, 3, 4], np.float32)
    b = np.array([0.5, 0.25, 0.1, -1], np.float32)
    return [tensor("INPUT0", a, "FP32", binary), tensor("INPUT1", b, "FP32", binary)]


def both(result):
    return [seen(result.as_numpy("OUTPUT0")), seen(result.as_numpy("OUTPUT1"))]


NUMBERS = {
    "BOOL": np.array([True, False, True]),
    "UINT8": np.array([0, 255], np.uint8),
    "UINT16": np.array([0, 65535], np.uint16),
    "UINT32": np.array([0, 2**32 - 1], np.uint32),
    "UINT64": np.array([0, 2**64 - 1], np.uint64),
    "INT8": np.array([-128, 127], np.int8),
    "INT16": np.array([-(2**15), 2**15 - 1], np.int16),
    "INT32": np.array([-(2**31), 2**31 - 1], np.int32),
    "INT64": np.array([-(2**63), 2**63 - 1], np.int64),
    "FP16": np.array([0.1, -65504], np.float16),
    "FP32": np.array([0.1, -3.4e38, np.inf, np.nan], np.float32),
    "FP64": np.array([0.1, 1e300], np.float64),
}


def round_trip(datatype, array, binary):
    def run(client):
        wanted = [http.InferRequestedOutput("OUTPUT_" + datatype, binary_data=binary)]
        result = client.infer("identity_all", [tensor("INPUT_" + datatype, array, datatype, binary)], outputs=wanted)
        return seen(result.as_numpy("OUTPUT_" + datatype))

    run.__name__ = "{}_{}".format(datatype, "binary" if binary else "json")
    return run


for datatype, array in NUMBERS.items():
    CHECKS["main"].append(round_trip(datatype, array, True))
    if datatype != "FP16":
        finite = array[np.isfinite(array)] if datatype == "FP32" else array
        CHECKS["main"].append(round_trip(datatype, finite, False))


@check()
def bf16_binary(client):
    array = np.array([1.5, -2, 0.1], ml_dtypes.bfloat16)
    result = client.infer("identity_bf16", [tensor("INPUT_BF16", array, "BF16")])
    return seen(result.as_numpy("OUTPUT_BF16"))


@check()
def bytes_binary(client):
    array = np.array(["", "grüße".encode(), b"\x00\xff"], dtype=object)
    result = client.infer("identity_all", [tensor("INPUT_STRING", array, "BYTES")])
    return seen(result.as_numpy("OUTPUT_STRING"))


@check()
def bytes_json(client):
    array = np.array(["", "grüße", 'quoted "x"'], dtype=object)
    wanted = [http.InferRequestedOutput("OUTPUT_STRING", binary_data=False)]
    result = client.infer("identity_all", [tensor("INPUT_STRING", array, "BYTES", False)], outputs=wanted)
    return seen(result.as_numpy("OUTPUT_STRING"))


@check()
def strings_through_a_model(client):
    array = np.array([b"abc", b"d e"], dtype=object)
    return seen(client.infer("upper", [tensor("TEXT", array, "BYTES")]).as_numpy("UPPER"))


@check()
def server_is_live_and_ready(client):
    return [client.is_server_live(), client.is_server_ready()]


@check()
def model_is_ready(client):
    return [client.is_model_ready("add_sub"), client.is_model_ready("versions", "3"), client.is_model_ready("nobody")]


@check()
def server_metadata(client):
    return client.get_server_metadata()["name"]


@check()
def model_metadata(client):
    return client.get_model_metadata("add_sub_batch")


@check()
def model_metadata_of_a_version(client):
    return client.get_model_metadata("versions", "1")


@check()
def model_config(client):
    config = client.get_model_config("add_sub_batch")
    return [config["name"], config["max_batch_size"], config["input"], config["instance_group"]]


@check()
def infer_without_outputs_is_binary(client):
    return both(client.infer("add_sub", pair()))


@check()
def infer_json_both_ways(client):
    wanted = [http.InferRequestedOutput(name, binary_data=False) for name in ("OUTPUT0", "OUTPUT1")]
    return both(client.infer("add_sub", pair(False), outputs=wanted))


@check()
def infer_one_output(client):
    result = client.infer("add_sub", pair(), outputs=[http.InferRequestedOutput("OUTPUT1")])
    return [seen(result.as_numpy("OUTPUT0")), seen(result.as_numpy("OUTPUT1"))]


@check()
def infer_with_id(client):
    return client.infer("add_sub", pair(), request_id="client-1").get_response()


@check()
def infer_a_version(client):
    value = tensor("IN", np.array([0], np.int32), "INT32")
    return [
        seen(client.infer("versions", [value], model_version="1").as_numpy("OUT")),
        seen(client.infer("versions", [value]).as_numpy("OUT")),
    ]


@check()
def infer_gzip(client):
    return both(
        client.infer("add_sub", pair(), request_compression_algorithm="gzip", response_compression_algorithm="gzip")
    )


@check()
def infer_deflate(client):
    return both(
        client.infer(
            "add_sub", pair(), request_compression_algorithm="deflate", response_compression_algorithm="deflate"
        )
    )


@check()
def async_infer(client):
    pending = [client.async_infer("add_sub", pair()) for _ in range(8)]
    results = [both(handle.get_result()) for handle in pending]
    return [results[0], all(result == results[0] for result in results)]


@check()
def classification(client):
    value = tensor("INPUT0", np.array([0.1, 0.7, 0.15, 0.05], np.float32), "FP32")
    result = client.infer("scores", [value], outputs=[http.InferRequestedOutput("SCORES", class_count=2)])
    return seen(result.as_numpy("SCORES"))


@check()
def parameters_reach_the_model(client):
    value = tensor("INPUT0", np.ones([1, 2], np.float32), "FP32")
    result = client.infer("report", [value], parameters={"a": "x", "b": 3, "c": True})
    return seen(result.as_numpy("REPORT"))


@check()
def a_sequence_reaches_the_model(client):
    value = tensor("INPUT0", np.ones([1, 2], np.float32), "FP32")
    result = client.infer("report", [value], sequence_id=7, sequence_start=True, sequence_end=True)
    return seen(result.as_numpy("REPORT"))


@check()
def an_ensemble(client):
    value = np.array([1, 2, 3, 4], np.float32)
    result = client.infer("chain", [tensor("A", value, "FP32"), tensor("B", value, "FP32")])
    return [seen(result.as_numpy("SUM")), seen(result.as_numpy("LAST"))]


@check()
def statistics(client):
    stats = client.get_inference_statistics("optional")["model_stats"][0]
    return [stats["name"], stats["version"], stats["inference_count"], sorted(stats), sorted(stats["inference_stats"])]


@check()
def a_large_tensor(client):
    array = np.arange(300_000, dtype=np.float32).reshape(-1, 3)
    result = client.infer("identity_matrix", [tensor("INPUT0", array, "FP32")])
    return bool((result.as_numpy("OUTPUT0") == array).all())


@check()
def error_unknown_model(client):
    return client.infer("nobody", pair())


@check()
def error_unknown_version(client):
    return client.infer("add_sub", pair(), model_version="9")


@check()
def error_missing_input(client):
    return client.infer("add_sub", pair()[:1])


@check()
def error_wrong_shape(client):
    return client.infer("scores", [tensor("INPUT0", np.zeros([3], np.float32), "FP32")])


@check()
def error_wrong_datatype(client):
    return client.infer("scores", [tensor("INPUT0", np.zeros([4], np.int32), "INT32")])


@check()
def error_unknown_output(client):
    return client.infer("add_sub", pair(), outputs=[http.InferRequestedOutput("NOBODY")])


@check()
def error_from_the_model(client):
    return client.infer("errors", [tensor("KIND", np.array([3], np.int32), "INT32")])


@check()
def error_raised_in_the_model(client):
    return client.infer("errors", [tensor("KIND", np.array([12], np.int32), "INT32")])


@check()
def error_metadata(client):
    return client.get_model_metadata("nobody")


@check()
def error_config(client):
    return client.get_model_config("nobody")


@check()
def error_statistics(client):
    return client.get_inference_statistics("nobody")


@check()
def error_load_without_explicit_mode(client):
    return client.load_model("add_sub")


@check("control")
def index(client):
    rows = client.get_model_repository_index()
    return [row for row in rows if row["name"] in ("add_sub", "versions_latest")]


@check("control")
def load_and_unload(client):
    client.load_model("auto")
    ready = client.is_model_ready("auto")
    client.unload_model("auto")
    return [ready, client.is_model_ready("auto")]


@check("control")
def load_with_config_and_file(client):
    config = {
        "backend": "python",
        "max_batch_size": 0,
        "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [1]}],
        "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [1]}],
    }
    program = b"""import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(r, "IN").as_numpy() for r in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", t + 1)]) for t in tensors]
"""
    client.load_model("from_client", config=json.dumps(config), files={"file:1/model.py": program})
    value = tensor("IN", np.array([41], np.int32), "INT32")
    answer = seen(client.infer("from_client", [value]).as_numpy("OUT"))
    client.unload_model("from_client")
    return answer


@check("control")
def error_load_unknown(client):
    return client.load_model("nobody")


@check("control")
def error_load_failing(client):
    return client.load_model("raises_in_initialize")


@check("control")
def ensemble_with_dependents(client):
    client.load_model("chain")
    ready = client.is_model_ready("chain")
    client.unload_model("chain", unload_dependents=True)
    return [ready, client.is_model_ready("chain")]


def outcome(function, client):
    try:
        return {"result": function(client)}
    except InferenceServerException as error:
        return {"exception": type(error).__name__, "status": error.status(), "message": error.message()}


def main():
    port, fixture = sys.argv[1:]
    with http.InferenceServerClient("127.0.0.1:" + port, concurrency=4, network_timeout=60) as client:
        print(json.dumps({function.__name__: outcome(function, client) for function in CHECKS[fixture]}))


if __name__ == "__main__":
    main()
