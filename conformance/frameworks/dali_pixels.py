"""Prepares photographs for Inception with DALI alone, on the CPU: `dali_pixels.py DIRECTORY PHOTOGRAPH...` writes `0.npy` and so on."""

import os
import sys

import numpy as np
from nvidia.dali import fn, pipeline_def, types


@pipeline_def(batch_size=64, num_threads=1, device_id=None)
def ready():
    encoded = fn.external_source(name="encoded")
    images = fn.resize(fn.decoders.image(encoded, output_type=types.RGB), resize_x=299, resize_y=299)
    mean, std = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="HWC", crop=(299, 299), mean=mean, std=std)


made = ready()
made.build()
made.feed_input("encoded", [np.fromfile(path, np.uint8) for path in sys.argv[2:]])
for index, one in enumerate(np.asarray(made.run()[0].as_tensor())):
    np.save(os.path.join(sys.argv[1], "%d.npy" % index), one)
