"""One DALI pipeline for photographs, for our backend, for Triton's Python backend, and in a loop with nothing around it.

`write_dali.py write DIRECTORY PACKAGES`: `galatea` and `oracle`, repositories of the same serialised pipeline.
`write_dali.py loop DIRECTORY PHOTOGRAPH ROWS SECONDS`: pictures a second that DALI alone gives, in batches of so many.
"""

import os
import shutil
import sys
import time

import numpy as np
from nvidia.dali import Pipeline, fn, pipeline_def, types

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = "photographs"
BATCH = 8

CONFIG = """%s
max_batch_size: 8
input { name: "encoded" data_type: TYPE_UINT8 dims: [ -1 ] allow_ragged_batch: true }
output { name: "pixels" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
dynamic_batching { }
instance_group { count: 1 kind: KIND_CPU }
%s"""


@pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
def photographs():
    encoded = fn.external_source(name="encoded", dtype=types.UINT8, ndim=1)
    images = fn.decoders.image(encoded, output_type=types.RGB)
    images = fn.resize(images, resize_x=224, resize_y=224)
    mean, deviation = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mean=mean, std=deviation)


def put(repository, backend, more=""):
    directory = os.path.join(repository, MODEL, "1")
    os.makedirs(directory)
    with open(os.path.join(repository, MODEL, "config.pbtxt"), "w") as file:
        file.write(CONFIG % (backend, more))
    with open(os.path.join(directory, "model.dali"), "wb") as file:
        file.write(photographs().serialize())
    return directory


def write(directory, packages):
    put(os.path.join(directory, "galatea"), 'backend: "dali"')
    environment = 'parameters { key: "PACKAGES" value { string_value: "%s" } }\n' % packages
    theirs = put(os.path.join(directory, "oracle"), 'backend: "python"', environment)
    shutil.copy(os.path.join(HERE, "dali_pipeline.py"), os.path.join(theirs, "model.py"))


def loop(directory, photograph, rows, seconds):
    with open(os.path.join(directory, "galatea", MODEL, "1", "model.dali"), "rb") as file:
        made = Pipeline.deserialize(file.read(), prefetch_queue_depth=1, exec_pipelined=False, exec_async=False)
    samples = [np.fromfile(photograph, np.uint8)] * int(rows)
    count = 0
    began = time.perf_counter()
    while time.perf_counter() - began < float(seconds):
        made.feed_input("encoded", samples)
        (given,) = made.run()
        # A server passes bytes on, and DALI reuses its memory for the next run.
        given.as_array().copy()
        count += len(samples)
    print(count / (time.perf_counter() - began))


def main():
    how, *rest = sys.argv[1:]
    {"write": write, "loop": loop}[how](*rest)


main()
