"""The real tritonclient.http against a server: `http_checks.py PORT main|control` prints {check: what the client made of it} as JSON."""

import numpy as np
import tritonclient.http as http
from checks import NUMBERS, Checks, Made, both, print_outcomes, seen

check = Checks()


def round_trip_as_json(datatype, array):
    def run(client, made):
        value = made.tensor("INPUT_" + datatype, array, datatype, binary_data=False)
        result = client.infer("identity_all", [value], outputs=made.wanted("OUTPUT_" + datatype, binary_data=False))
        return seen(result.as_numpy("OUTPUT_" + datatype))

    run.__name__ = datatype + "_json"
    return run


for datatype, array in NUMBERS.items():
    if datatype != "FP16":
        check()(round_trip_as_json(datatype, array[np.isfinite(array)]))


@check()
def bytes_json(client, made):
    array = np.array(["", "grüße", 'quoted "x"'], dtype=object)
    value = made.tensor("INPUT_STRING", array, "BYTES", binary_data=False)
    result = client.infer("identity_all", [value], outputs=made.wanted("OUTPUT_STRING", binary_data=False))
    return seen(result.as_numpy("OUTPUT_STRING"))


@check()
def model_config(client, made):
    config = client.get_model_config("add_sub_batch")
    return [config["name"], config["max_batch_size"], config["input"], config["instance_group"]]


@check()
def infer_json_both_ways(client, made):
    wanted = made.wanted("OUTPUT0", binary_data=False) + made.wanted("OUTPUT1", binary_data=False)
    return both(client.infer("add_sub", made.pair(binary_data=False), outputs=wanted))


@check()
def infer_with_id(client, made):
    return client.infer("add_sub", made.pair(), request_id="client-1").get_response()


@check()
def infer_gzip(client, made):
    return both(
        client.infer(
            "add_sub", made.pair(), request_compression_algorithm="gzip", response_compression_algorithm="gzip"
        )
    )


@check()
def infer_deflate(client, made):
    return both(
        client.infer(
            "add_sub", made.pair(), request_compression_algorithm="deflate", response_compression_algorithm="deflate"
        )
    )


@check()
def async_infer(client, made):
    pending = [client.async_infer("add_sub", made.pair()) for _ in range(8)]
    results = [both(handle.get_result()) for handle in pending]
    return [results[0], all(result == results[0] for result in results)]


@check("control")
def index(client, made):
    rows = client.get_model_repository_index()
    return [row for row in rows if row["name"] in ("add_sub", "versions_latest")]


if __name__ == "__main__":
    print_outcomes(Made(http, {}), check, concurrency=4, network_timeout=60)
