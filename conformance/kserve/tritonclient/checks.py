"""What is asked of both clients, tritonclient.http and tritonclient.grpc, in the same words.

A result holds only what a user sees: arrays with their datatype and shape, parsed answers, exceptions with their text.
"""

import json
import sys

import ml_dtypes
import numpy as np
from tritonclient.utils import InferenceServerException

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

PROGRAM = b"""import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(r, "IN").as_numpy() for r in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", t + 1)]) for t in tensors]
"""


def seen(value):
    """An array as JSON can hold it: every element as text."""
    if value is None:
        return None
    elements = [repr(element) if isinstance(element, bytes) else str(element) for element in value.reshape(-1)]
    return {"dtype": str(value.dtype), "shape": list(value.shape), "elements": elements}


def both(result):
    return [seen(result.as_numpy("OUTPUT0")), seen(result.as_numpy("OUTPUT1"))]


class Made:
    """What is sent, made by one client's `module`; with `as_json` the gRPC client answers as the HTTP one does."""

    def __init__(self, module, as_json):
        self.module = module
        self.as_json = as_json

    def tensor(self, name, array, datatype, **options):
        made = self.module.InferInput(name, list(array.shape), datatype)
        made.set_data_from_numpy(array, **options)
        return made

    def pair(self, **options):
        a = np.array([1, 2, 3, 4], np.float32)
        b = np.array([0.5, 0.25, 0.1, -1], np.float32)
        return [self.tensor("INPUT0", a, "FP32", **options), self.tensor("INPUT1", b, "FP32", **options)]

    def wanted(self, name, **options):
        return [self.module.InferRequestedOutput(name, **options)]


class Checks:
    """Functions of a client and what it sends, by the fixture that they are asked of."""

    def __init__(self):
        self.by_fixture = {"main": [], "control": []}

    def __call__(self, fixture="main"):
        def add(function):
            self.by_fixture[fixture].append(function)
            return function

        return add


check = Checks()


def outcome(function, client, made):
    try:
        return {"result": function(client, made)}
    except InferenceServerException as error:
        return {"exception": type(error).__name__, "status": error.status(), "message": error.message()}


def print_outcomes(made, own, **options):
    """The program of a client, whose arguments are the port and the fixture: asks all of this file, then its `own` checks."""
    port, fixture = sys.argv[1:]
    functions = check.by_fixture[fixture] + own.by_fixture[fixture]
    with made.module.InferenceServerClient("127.0.0.1:" + port, **options) as client:
        print(json.dumps({function.__name__: outcome(function, client, made) for function in functions}))


def round_trip(datatype, array):
    def run(client, made):
        result = client.infer("identity_all", [made.tensor("INPUT_" + datatype, array, datatype)])
        return seen(result.as_numpy("OUTPUT_" + datatype))

    run.__name__ = datatype
    return run


for datatype, array in NUMBERS.items():
    check()(round_trip(datatype, array))


@check()
def bf16(client, made):
    array = np.array([1.5, -2, 0.1], ml_dtypes.bfloat16)
    return seen(client.infer("identity_bf16", [made.tensor("INPUT_BF16", array, "BF16")]).as_numpy("OUTPUT_BF16"))


@check()
def error_unknown_model(client, made):
    return client.infer("nobody", made.pair())


@check()
def error_unknown_version(client, made):
    return client.infer("add_sub", made.pair(), model_version="9")


@check()
def error_missing_input(client, made):
    return client.infer("add_sub", made.pair()[:1])


@check()
def error_wrong_shape(client, made):
    return client.infer("scores", [made.tensor("INPUT0", np.zeros([3], np.float32), "FP32")])


@check()
def error_wrong_datatype(client, made):
    return client.infer("scores", [made.tensor("INPUT0", np.zeros([4], np.int32), "INT32")])


@check()
def error_unknown_output(client, made):
    return client.infer("add_sub", made.pair(), outputs=made.wanted("NOBODY"))


@check()
def error_from_the_model(client, made):
    return client.infer("errors", [made.tensor("KIND", np.array([3], np.int32), "INT32")])


@check()
def error_raised_in_the_model(client, made):
    return client.infer("errors", [made.tensor("KIND", np.array([12], np.int32), "INT32")])


@check()
def error_with_letters_beyond_ascii(client, made):
    return client.infer("errors", [made.tensor("KIND", np.array([17], np.int32), "INT32")])


@check()
def error_metadata(client, made):
    return client.get_model_metadata("nobody")


@check()
def error_config(client, made):
    return client.get_model_config("nobody")


@check()
def error_statistics(client, made):
    return client.get_inference_statistics("nobody")


@check()
def error_load_without_explicit_mode(client, made):
    return client.load_model("add_sub")


@check()
def infer(client, made):
    return both(client.infer("add_sub", made.pair()))


@check()
def infer_one_output(client, made):
    return both(client.infer("add_sub", made.pair(), outputs=made.wanted("OUTPUT1")))


@check()
def infer_a_version(client, made):
    value = made.tensor("IN", np.array([0], np.int32), "INT32")
    return [
        seen(client.infer("versions", [value], model_version="1").as_numpy("OUT")),
        seen(client.infer("versions", [value]).as_numpy("OUT")),
    ]


@check()
def strings(client, made):
    array = np.array(["", "grüße".encode(), b"\x00\xff"], dtype=object)
    result = client.infer("identity_all", [made.tensor("INPUT_STRING", array, "BYTES")])
    return seen(result.as_numpy("OUTPUT_STRING"))


@check()
def strings_through_a_model(client, made):
    array = np.array([b"abc", b"d e"], dtype=object)
    return seen(client.infer("upper", [made.tensor("TEXT", array, "BYTES")]).as_numpy("UPPER"))


@check()
def classification(client, made):
    value = made.tensor("INPUT0", np.array([0.1, 0.7, 0.15, 0.05], np.float32), "FP32")
    result = client.infer("scores", [value], outputs=made.wanted("SCORES", class_count=2))
    return seen(result.as_numpy("SCORES"))


@check()
def parameters_reach_the_model(client, made):
    value = made.tensor("INPUT0", np.ones([1, 2], np.float32), "FP32")
    result = client.infer("report", [value], parameters={"a": "x", "b": 3, "c": True})
    return seen(result.as_numpy("REPORT"))


@check()
def a_sequence_reaches_the_model(client, made):
    value = made.tensor("INPUT0", np.ones([1, 2], np.float32), "FP32")
    result = client.infer("report", [value], sequence_id=7, sequence_start=True, sequence_end=True, priority=1)
    return seen(result.as_numpy("REPORT"))


@check()
def an_ensemble(client, made):
    value = np.array([1, 2, 3, 4], np.float32)
    result = client.infer("chain", [made.tensor("A", value, "FP32"), made.tensor("B", value, "FP32")])
    return [seen(result.as_numpy("SUM")), seen(result.as_numpy("LAST"))]


@check()
def a_large_tensor(client, made):
    array = np.arange(3_000_000, dtype=np.float32).reshape(-1, 3)
    result = client.infer("identity_matrix", [made.tensor("INPUT0", array, "FP32")])
    return bool((result.as_numpy("OUTPUT0") == array).all())


@check()
def server_is_live_and_ready(client, made):
    return [client.is_server_live(), client.is_server_ready()]


@check()
def model_is_ready(client, made):
    return [client.is_model_ready(*which) for which in (["add_sub"], ["versions", "3"], ["nobody"])]


@check()
def server_metadata(client, made):
    return client.get_server_metadata(**made.as_json)["name"]


@check()
def model_metadata(client, made):
    return client.get_model_metadata("add_sub_batch", **made.as_json)


@check()
def model_metadata_of_a_version(client, made):
    return client.get_model_metadata("versions", "1", **made.as_json)


@check()
def statistics(client, made):
    stats = client.get_inference_statistics("optional", **made.as_json)["model_stats"][0]
    return [
        stats["name"],
        stats["version"],
        stats.get("inference_count"),
        sorted(stats),
        sorted(stats["inference_stats"]),
    ]


@check("control")
def load_and_unload(client, made):
    client.load_model("auto")
    ready = client.is_model_ready("auto")
    client.unload_model("auto")
    return [ready, client.is_model_ready("auto")]


@check("control")
def load_with_config_and_file(client, made):
    config = {
        "backend": "python",
        "max_batch_size": 0,
        "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [1]}],
        "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [1]}],
    }
    client.load_model("from_client", config=json.dumps(config), files={"file:1/model.py": PROGRAM})
    value = made.tensor("IN", np.array([41], np.int32), "INT32")
    answer = seen(client.infer("from_client", [value]).as_numpy("OUT"))
    client.unload_model("from_client")
    return answer


@check("control")
def error_load_unknown(client, made):
    return client.load_model("nobody")


@check("control")
def error_load_failing(client, made):
    return client.load_model("raises_in_initialize")


@check("control")
def ensemble_with_dependents(client, made):
    client.load_model("chain")
    ready = client.is_model_ready("chain")
    client.unload_model("chain", unload_dependents=True)
    return [ready, client.is_model_ready("chain")]
