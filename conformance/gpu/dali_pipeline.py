"""Writes a pipeline that decodes and scales pictures with a GPU: `dali_pipeline.py MODEL.DALI`."""

import sys

from nvidia.dali import fn, pipeline_def, types


@pipeline_def(batch_size=8, num_threads=1, device_id=None, output_dtype=[types.UINT8], output_ndim=[3])
def thumbnail():
    encoded = fn.external_source(name="encoded", dtype=types.UINT8, ndim=1)
    return fn.resize(fn.decoders.image(encoded, device="mixed", output_type=types.RGB), resize_x=64, resize_y=64)


with open(sys.argv[1], "wb") as file:
    file.write(thumbnail().serialize())
