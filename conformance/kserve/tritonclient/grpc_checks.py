"""The real tritonclient.grpc against a server: `grpc_checks.py PORT main|control` prints {check: what the client made of it} as JSON."""

import asyncio
import queue
import sys

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.grpc.aio as aio
from checks import Checks, Made, both, print_outcomes, seen
from tritonclient.utils import InferenceServerException

check = Checks()
WAIT_SECONDS = 30


def address():
    return "127.0.0.1:" + sys.argv[1]


def told(error):
    return [type(error).__name__, error.status(), error.message()]


@check()
def model_config(client, made):
    config = client.get_model_config("add_sub_batch", as_json=True)["config"]
    return [config["name"], config["max_batch_size"], config["input"], config["instance_group"]]


@check()
def infer_with_id(client, made):
    response = client.infer("add_sub", made.pair(), request_id="client-1").get_response()
    return [response.id, response.model_name, response.model_version, [output.name for output in response.outputs]]


@check()
def infer_with_a_deadline(client, made):
    return both(client.infer("add_sub", made.pair(), client_timeout=WAIT_SECONDS))


@check()
def a_deadline_that_passes(client, made):
    value = made.tensor("DELAY_MS", np.array([[3000]], np.int32), "INT32")
    try:
        client.infer("batches_plain", [value], client_timeout=0.3)
    except InferenceServerException as error:
        return told(error)
    return "no error"


@check()
def compressed_requests(client, made):
    return [both(client.infer("add_sub", made.pair(), compression_algorithm=name)) for name in ("gzip", "deflate")]


@check()
def a_large_compressed_request(client, made):
    array = np.zeros([100_000, 3], np.float32)
    result = client.infer("identity_matrix", [made.tensor("INPUT0", array, "FP32")], compression_algorithm="gzip")
    return bool((result.as_numpy("OUTPUT0") == array).all())


@check()
def async_infer(client, made):
    results = queue.Queue()
    for _ in range(8):
        client.async_infer("add_sub", made.pair(), callback=lambda result, error: results.put((result, error)))
    got = [results.get(timeout=WAIT_SECONDS) for _ in range(8)]
    return [both(got[0][0]), all(error is None and both(result) == both(got[0][0]) for result, error in got)]


@check()
def async_infer_cancelled(client, made):
    results = queue.Queue()
    value = made.tensor("DELAY_MS", np.array([[3000]], np.int32), "INT32")
    call = client.async_infer("batches_plain", [value], callback=lambda result, error: results.put(error))
    call.cancel()
    return told(results.get(timeout=WAIT_SECONDS))


@check()
def a_stream(client, made):
    results = queue.Queue()
    client.start_stream(lambda result, error: results.put((result, error)))
    for index in range(5):
        client.async_stream_infer("add_sub", made.pair(), request_id=str(index))
    got = [results.get(timeout=WAIT_SECONDS) for _ in range(5)]
    client.stop_stream()
    return [[result.get_response().id for result, _ in got], both(got[-1][0])]


@check()
def a_stream_with_final_flags(client, made):
    results = queue.Queue()
    client.start_stream(lambda result, error: results.put((result, error)))
    client.async_stream_infer("add_sub", made.pair(), enable_empty_final_response=True)
    result, _ = results.get(timeout=WAIT_SECONDS)
    client.stop_stream()
    return result.get_response().parameters["triton_final_response"].bool_param


@check()
def a_stream_goes_on_after_errors(client, made):
    results = queue.Queue()
    client.start_stream(lambda result, error: results.put((result, error)))
    client.async_stream_infer("add_sub", made.pair()[:1])
    client.async_stream_infer("errors", [made.tensor("KIND", np.array([3], np.int32), "INT32")])
    client.async_stream_infer("add_sub", made.pair())
    got = [results.get(timeout=WAIT_SECONDS) for _ in range(3)]
    client.stop_stream()
    return [told(got[0][1])[2], told(got[1][1])[2], both(got[2][0])]


@check()
def a_stream_that_ends_at_an_error(client, made):
    results = queue.Queue()
    client.start_stream(lambda result, error: results.put((result, error)), headers={"triton_grpc_error": "true"})
    client.async_stream_infer("errors", [made.tensor("KIND", np.array([3], np.int32), "INT32")])
    _, error = results.get(timeout=WAIT_SECONDS)
    client.stop_stream(cancel_requests=True)
    return told(error)


def streams(client, made, *codes, answers, **options):
    """What is told of the first answers of a decoupled model that runs `codes`, one a request."""
    results = queue.Queue()
    client.start_stream(lambda result, error: results.put((result, error)))
    for index, code in enumerate(codes):
        value = made.tensor("CODE", np.array([code.encode()], dtype=object), "BYTES")
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
def a_decoupled_model(client, made):
    code = "for i in range(3): sender.send(answer(i))\nsender.send(flags=FINAL)"
    return streams(client, made, code, "sender.send(answer('x'), FINAL)", answers=4)


@check()
def a_decoupled_model_with_empty_final_responses(client, made):
    code = "sender.send(answer(1))\nsender.send(flags=FINAL)"
    return streams(client, made, code, "sender.send(flags=FINAL)", answers=3, enable_empty_final_response=True)


@check()
def a_decoupled_model_that_fails_in_the_middle(client, made):
    return streams(
        client, made, "sender.send(answer(1)); sender.send(error('no')); sender.send(answer(2), FINAL)", answers=3
    )


@check()
def error_decoupled_without_a_stream(client, made):
    return client.infer("streams", [made.tensor("CODE", np.array([b""], dtype=object), "BYTES")])


@check()
def a_stream_cancelled(client, made):
    results = queue.Queue()
    client.start_stream(lambda result, error: results.put((result, error)))
    value = made.tensor("DELAY_MS", np.array([[3000]], np.int32), "INT32")
    client.async_stream_infer("batches_plain", [value])
    client.stop_stream(cancel_requests=True)
    _, error = results.get(timeout=WAIT_SECONDS)
    return told(error)[:2]


@check()
def asyncio_infer(client, made):
    async def run():
        async with aio.InferenceServerClient(address()) as other:
            ready = await other.is_model_ready("add_sub")
            results = await asyncio.gather(*(other.infer("add_sub", made.pair()) for _ in range(4)))
            return [ready, both(results[0]), all(both(result) == both(results[0]) for result in results)]

    return asyncio.run(run())


@check()
def asyncio_stream(client, made):
    async def run():
        async def requests():
            for index in range(3):
                yield {"model_name": "add_sub", "inputs": made.pair(), "request_id": str(index)}

        async with aio.InferenceServerClient(address()) as other:
            return [result.get_response().id async for result, error in other.stream_infer(requests())]

    return asyncio.run(run())


@check("control")
def index(client, made):
    rows = client.get_model_repository_index(as_json=True)["models"]
    return [row for row in rows if row["name"] in ("add_sub", "versions_latest")]


if __name__ == "__main__":
    print_outcomes(Made(grpc_client, {"as_json": True}), check)
