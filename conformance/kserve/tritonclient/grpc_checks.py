"""The real tritonclient.grpc against a server: `grpc_checks.py PORT main|control` prints {check: what the client made of it} as JSON."""

import asyncio
import json
import queue
import sys

import ml_dtypes
import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.grpc.aio as aio
from checks import NUMBERS, outcome, seen
from tritonclient.utils import InferenceServerException

CHECKS = {"main": [], "control": []}
WAIT_SECONDS = 30


def check(fixture="main"):
    def add(function):
        CHECKS[fixture].append(function)
        return function

    return add


def tensor(name, array, datatype):
    made = grpc_client.InferInput(name, list(array.shape), datatype)
    made.set_data_from_numpy(array)
    return made


def pair():
    a = np.array([1, 2, 3, 4], np.float32)
    b = np.array([0.5, 0.25, 0.1, -1], np.float32)
    return [tensor("INPUT0", a, "FP32"), tensor("INPUT1", b, "FP32")]


def both(result):
    return [seen(result.as_numpy("OUTPUT0")), seen(result.as_numpy("OUTPUT1"))]


def told(error):
    return [type(error).__name__, error.status(), error.message()]


def round_trip(datatype, array):
    def run(client):
        result = client.infer("identity_all", [tensor("INPUT_" + datatype, array, datatype)])
        return seen(result.as_numpy("OUTPUT_" + datatype))

    run.__name__ = datatype
    return run


for datatype, array in NUMBERS.items():
    CHECKS["main"].append(round_trip(datatype, array))


@check()
def bf16(client):
    array = np.array([1.5, -2, 0.1], ml_dtypes.bfloat16)
    return seen(client.infer("identity_bf16", [tensor("INPUT_BF16", array, "BF16")]).as_numpy("OUTPUT_BF16"))


@check()
def strings(client):
    array = np.array(["", "grüße".encode(), b"\x00\xff"], dtype=object)
    return seen(client.infer("identity_all", [tensor("INPUT_STRING", array, "BYTES")]).as_numpy("OUTPUT_STRING"))


@check()
def server_is_live_and_ready(client):
    return [client.is_server_live(), client.is_server_ready()]


@check()
def model_is_ready(client):
    return [client.is_model_ready("add_sub"), client.is_model_ready("versions", "3"), client.is_model_ready("nobody")]


@check()
def server_metadata(client):
    return client.get_server_metadata(as_json=True)["name"]


@check()
def model_metadata(client):
    return client.get_model_metadata("add_sub_batch", as_json=True)


@check()
def model_config(client):
    config = client.get_model_config("add_sub_batch", as_json=True)["config"]
    return [config["name"], config["max_batch_size"], config["input"], config["instance_group"]]


@check()
def infer(client):
    return both(client.infer("add_sub", pair()))


@check()
def infer_one_output(client):
    result = client.infer("add_sub", pair(), outputs=[grpc_client.InferRequestedOutput("OUTPUT1")])
    return [seen(result.as_numpy("OUTPUT0")), seen(result.as_numpy("OUTPUT1"))]


@check()
def infer_with_id(client):
    response = client.infer("add_sub", pair(), request_id="client-1").get_response()
    return [response.id, response.model_name, response.model_version, [output.name for output in response.outputs]]


@check()
def infer_a_version(client):
    value = tensor("IN", np.array([0], np.int32), "INT32")
    return [
        seen(client.infer("versions", [value], model_version="1").as_numpy("OUT")),
        seen(client.infer("versions", [value]).as_numpy("OUT")),
    ]


@check()
def infer_with_a_deadline(client):
    return both(client.infer("add_sub", pair(), client_timeout=WAIT_SECONDS))


@check()
def a_deadline_that_passes(client):
    value = tensor("DELAY_MS", np.array([[3000]], np.int32), "INT32")
    try:
        client.infer("batches_plain", [value], client_timeout=0.3)
    except InferenceServerException as error:
        return told(error)
    return "no error"


@check()
def compressed_requests(client):
    return [both(client.infer("add_sub", pair(), compression_algorithm=name)) for name in ("gzip", "deflate")]


@check()
def a_large_compressed_request(client):
    array = np.zeros([100_000, 3], np.float32)
    result = client.infer("identity_matrix", [tensor("INPUT0", array, "FP32")], compression_algorithm="gzip")
    return bool((result.as_numpy("OUTPUT0") == array).all())


@check()
def async_infer(client):
    results = queue.Queue()
    for _ in range(8):
        client.async_infer("add_sub", pair(), callback=lambda result, error: results.put((result, error)))
    got = [results.get(timeout=WAIT_SECONDS) for _ in range(8)]
    return [both(got[0][0]), all(error is None and both(result) == both(got[0][0]) for result, error in got)]


@check()
def async_infer_cancelled(client):
    results = queue.Queue()
    value = tensor("DELAY_MS", np.array([[3000]], np.int32), "INT32")
    call = client.async_infer("batches_plain", [value], callback=lambda result, error: results.put(error))
    call.cancel()
    return told(results.get(timeout=WAIT_SECONDS))


@check()
def classification(client):
    value = tensor("INPUT0", np.array([0.1, 0.7, 0.15, 0.05], np.float32), "FP32")
    result = client.infer("scores", [value], outputs=[grpc_client.InferRequestedOutput("SCORES", class_count=2)])
    return seen(result.as_numpy("SCORES"))


@check()
def parameters_reach_the_model(client):
    value = tensor("INPUT0", np.ones([1, 2], np.float32), "FP32")
    result = client.infer("report", [value], parameters={"a": "x", "b": 3, "c": True})
    return seen(result.as_numpy("REPORT"))


@check()
def a_sequence_reaches_the_model(client):
    value = tensor("INPUT0", np.ones([1, 2], np.float32), "FP32")
    result = client.infer("report", [value], sequence_id=7, sequence_start=True, sequence_end=True, priority=1)
    return seen(result.as_numpy("REPORT"))


@check()
def an_ensemble(client):
    value = np.array([1, 2, 3, 4], np.float32)
    result = client.infer("chain", [tensor("A", value, "FP32"), tensor("B", value, "FP32")])
    return [seen(result.as_numpy("SUM")), seen(result.as_numpy("LAST"))]


@check()
def statistics(client):
    stats = client.get_inference_statistics("optional", as_json=True)["model_stats"][0]
    return [stats["name"], stats["version"], sorted(stats["inference_stats"])]


@check()
def a_large_tensor(client):
    array = np.arange(3_000_000, dtype=np.float32).reshape(-1, 3)
    result = client.infer("identity_matrix", [tensor("INPUT0", array, "FP32")])
    return bool((result.as_numpy("OUTPUT0") == array).all())


@check()
def a_stream(client):
    results = queue.Queue()
    client.start_stream(lambda result, error: results.put((result, error)))
    for index in range(5):
        client.async_stream_infer("add_sub", pair(), request_id=str(index))
    got = [results.get(timeout=WAIT_SECONDS) for _ in range(5)]
    client.stop_stream()
    return [[result.get_response().id for result, _ in got], both(got[-1][0])]


@check()
def a_stream_with_final_flags(client):
    results = queue.Queue()
    client.start_stream(lambda result, error: results.put((result, error)))
    client.async_stream_infer("add_sub", pair(), enable_empty_final_response=True)
    result, _ = results.get(timeout=WAIT_SECONDS)
    client.stop_stream()
    return result.get_response().parameters["triton_final_response"].bool_param


@check()
def a_stream_goes_on_after_errors(client):
    results = queue.Queue()
    client.start_stream(lambda result, error: results.put((result, error)))
    client.async_stream_infer("add_sub", pair()[:1])
    client.async_stream_infer("errors", [tensor("KIND", np.array([3], np.int32), "INT32")])
    client.async_stream_infer("add_sub", pair())
    got = [results.get(timeout=WAIT_SECONDS) for _ in range(3)]
    client.stop_stream()
    return [told(got[0][1])[2], told(got[1][1])[2], both(got[2][0])]


@check()
def a_stream_that_ends_at_an_error(client):
    results = queue.Queue()
    client.start_stream(lambda result, error: results.put((result, error)), headers={"triton_grpc_error": "true"})
    client.async_stream_infer("errors", [tensor("KIND", np.array([3], np.int32), "INT32")])
    _, error = results.get(timeout=WAIT_SECONDS)
    client.stop_stream(cancel_requests=True)
    return told(error)


def streams(client, *codes, answers, **options):
    """What is told of the first answers of a decoupled model that runs `codes`, one a request."""
    results = queue.Queue()
    client.start_stream(lambda result, error: results.put((result, error)))
    for index, code in enumerate(codes):
        value = tensor("CODE", np.array([code.encode()], dtype=object), "BYTES")
        client.async_stream_infer("streams", [value], request_id=str(index), **options)
    told_of = []
    for _ in range(answers):
        result, error = results.get(timeout=WAIT_SECONDS)
        if error is not None:
            told_of.append(told(error))
            continue
        response = result.get_response()
        out = result.as_numpy("OUT")
        told_of.append(
            [response.id, out is not None and seen(out), response.parameters["triton_final_response"].bool_param]
        )
    client.stop_stream()
    return told_of


@check()
def a_decoupled_model(client):
    code = "for i in range(3): sender.send(answer(i))\nsender.send(flags=FINAL)"
    return streams(client, code, "sender.send(answer('x'), FINAL)", answers=4)


@check()
def a_decoupled_model_with_empty_final_responses(client):
    code = "sender.send(answer(1))\nsender.send(flags=FINAL)"
    return streams(client, code, "sender.send(flags=FINAL)", answers=3, enable_empty_final_response=True)


@check()
def a_decoupled_model_that_fails_in_the_middle(client):
    return streams(client, "sender.send(answer(1)); sender.send(error('no')); sender.send(answer(2), FINAL)", answers=3)


@check()
def error_decoupled_without_a_stream(client):
    return client.infer("streams", [tensor("CODE", np.array([b""], dtype=object), "BYTES")])


@check()
def a_stream_cancelled(client):
    results = queue.Queue()
    client.start_stream(lambda result, error: results.put((result, error)))
    value = tensor("DELAY_MS", np.array([[3000]], np.int32), "INT32")
    client.async_stream_infer("batches_plain", [value])
    client.stop_stream(cancel_requests=True)
    _, error = results.get(timeout=WAIT_SECONDS)
    return told(error)[:2]


@check()
def asyncio_infer(client):
    async def run():
        async with aio.InferenceServerClient(ADDRESS) as other:
            ready = await other.is_model_ready("add_sub")
            results = await asyncio.gather(*(other.infer("add_sub", pair()) for _ in range(4)))
            return [ready, both(results[0]), all(both(result) == both(results[0]) for result in results)]

    return asyncio.run(run())


@check()
def asyncio_stream(client):
    async def run():
        async def requests():
            for index in range(3):
                yield {"model_name": "add_sub", "inputs": pair(), "request_id": str(index)}

        async with aio.InferenceServerClient(ADDRESS) as other:
            return [result.get_response().id async for result, error in other.stream_infer(requests())]

    return asyncio.run(run())


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
def error_unknown_output(client):
    return client.infer("add_sub", pair(), outputs=[grpc_client.InferRequestedOutput("NOBODY")])


@check()
def error_from_the_model(client):
    return client.infer("errors", [tensor("KIND", np.array([3], np.int32), "INT32")])


@check()
def error_raised_in_the_model(client):
    return client.infer("errors", [tensor("KIND", np.array([17], np.int32), "INT32")])


@check()
def error_metadata(client):
    return client.get_model_metadata("nobody")


@check()
def error_statistics(client):
    return client.get_inference_statistics("nobody")


@check()
def error_load_without_explicit_mode(client):
    return client.load_model("add_sub")


@check("control")
def index(client):
    rows = client.get_model_repository_index(as_json=True)["models"]
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
    client.load_model("from_grpc", config=json.dumps(config), files={"file:1/model.py": program})
    value = tensor("IN", np.array([41], np.int32), "INT32")
    answer = seen(client.infer("from_grpc", [value]).as_numpy("OUT"))
    client.unload_model("from_grpc")
    return answer


@check("control")
def error_load_unknown(client):
    return client.load_model("nobody")


@check("control")
def error_load_failing(client):
    return client.load_model("raises_in_initialize")


ADDRESS = ""


def main():
    global ADDRESS
    port, fixture = sys.argv[1:]
    ADDRESS = "127.0.0.1:" + port
    with grpc_client.InferenceServerClient(ADDRESS) as client:
        print(json.dumps({function.__name__: outcome(function, client) for function in CHECKS[fixture]}))


if __name__ == "__main__":
    main()
