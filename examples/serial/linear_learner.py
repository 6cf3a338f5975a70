"""Writes archives of SageMaker's linear learner without MXNet."""

import io
import json
import struct
import zipfile


def linear_files(weights, bias):
    """Returns the file `model_algo-1` of linear learner: a zip archive with a symbol and parameters of MXNet."""

    def ndarray(shape, values):
        head = struct.pack("<IiI", 0xF993FAC9, 0, len(shape)) + struct.pack("<%dq" % len(shape), *shape)
        return head + struct.pack("<iii", 1, 0, 0) + struct.pack("<%df" % len(values), *values)

    names = [b"arg:fc0_weight", b"arg:fc0_bias"]
    parameters = struct.pack("<QQQ", 0x112, 0, 2) + ndarray([1, len(weights)], weights) + ndarray([1], [bias])
    parameters += struct.pack("<Q", 2) + b"".join(struct.pack("<Q", len(name)) + name for name in names)
    variable = lambda name: {"op": "null", "name": name, "inputs": []}
    nodes = [variable("data"), variable("fc0_weight"), variable("fc0_bias")]
    nodes.append(
        {
            "op": "FullyConnected",
            "name": "fc0",
            "attrs": {"num_hidden": "1"},
            "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]],
        }
    )
    nodes += [variable("out_label"), {"op": "LinearRegressionOutput", "name": "out", "inputs": [[3, 0, 0], [4, 0, 0]]}]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        zipped.writestr("additional-params.json", "{}")
        zipped.writestr("manifest.json", "{}")
        zipped.writestr(
            "mx-mod-symbol.json", json.dumps({"nodes": nodes, "arg_nodes": [0, 1, 2, 4], "heads": [[5, 0, 0]]})
        )
        zipped.writestr("mx-mod-0000.params", parameters)
    return {"model_algo-1": buffer.getvalue()}
