"""The preprocessing of pictures for Inception v3, as a user of DALI writes it for a GPU: `pipeline.py FILE`.

DALI can serialize it on a machine without a GPU; the server decides where it runs.
"""

import sys

from nvidia.dali import fn, pipeline_def, types


@pipeline_def(batch_size=3, num_threads=1, device_id=None)
def pipe():
    images = fn.external_source(device="cpu", name="DALI_INPUT_0")
    images = fn.decoders.image(images, device="mixed", output_type=types.RGB)
    images = fn.resize(images, resize_x=299, resize_y=299)
    return fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="HWC",
        crop=(299, 299),
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
    )


pipe().serialize(filename=sys.argv[1])
