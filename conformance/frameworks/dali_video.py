"""Writes a repository of pipelines that split videos into sequences of frames: `dali_video.py REPOSITORY`. The script does not run them."""

import os
import sys

from nvidia.dali import fn, pipeline_def, types

(ROOT,) = sys.argv[1:]
DECOUPLED = "model_transaction_policy { decoupled: true }\n"
IO = """backend: "dali"
max_batch_size: 3
input { name: "video" data_type: TYPE_UINT8 dims: -1 }
output { name: "frames" data_type: TYPE_UINT8 dims: [ -1, -1, -1, -1 ] }
"""


def put(name, made, config):
    os.makedirs(os.path.join(ROOT, name, "1"))
    with open(os.path.join(ROOT, name, "1", "model.dali"), "wb") as out:
        out.write(made.serialize())
    with open(os.path.join(ROOT, name, "config.pbtxt"), "w") as out:
        out.write(config)


def pipeline(define):
    return pipeline_def(batch_size=3, num_threads=1, device_id=None)(define)()


def video(policy, device="cpu"):
    return lambda: fn.experimental.inputs.video(
        name="video", sequence_length=5, device=device, last_sequence_policy=policy
    )


def beside():
    return video("pad")() + fn.external_source(name="more", dtype=types.UINT8, ndim=1)


put("padded", pipeline(video("pad")), IO + DECOUPLED)
put("partial", pipeline(video("partial")), IO + DECOUPLED)
# Made for a GPU.
put("mixed", pipeline(video("pad", "mixed")), IO + DECOUPLED)
put("refuse_coupled", pipeline(video("pad")), IO)
more = IO + 'input { name: "more" data_type: TYPE_UINT8 dims: -1 }\n' + DECOUPLED
put("refuse_two_inputs", pipeline(beside), more)
source = pipeline(lambda: fn.external_source(name="video", dtype=types.UINT8, ndim=1))
single = IO.replace("[ -1, -1, -1, -1 ]", "-1")
put("plain", source, single + DECOUPLED)
put("refuse_plugin", source, single + 'parameters { key: "plugin_libs" value { string_value: "/tmp/mine.so" } }\n')
with open(os.path.join(ROOT, "..", "cases.json"), "w") as out:
    out.write("[]")
