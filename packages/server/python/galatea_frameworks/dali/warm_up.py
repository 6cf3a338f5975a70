"""Imported by the zygote before workers are forked.

Runs a first pipeline and decodes a first image, so that all workers share the memory of DALI's initialization. The threads of a pipeline
end together with the pipeline, so the zygote has one thread again.
"""

from __future__ import annotations

import gc

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.pipeline import Pipeline

from . import program  # noqa: F401 - imported for the workers


@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def _small() -> object:
    images = fn.external_source(name="images", dtype=types.UINT8, ndim=3, layout="HWC")
    images = fn.resize(images, resize_x=4, resize_y=4)
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="HWC", crop=(4, 4), mean=[1.0], std=[2.0])


def _warm_up() -> None:
    made = Pipeline.deserialize(
        _small().serialize(), prefetch_queue_depth=1, exec_pipelined=False, exec_async=False, num_threads=1
    )
    made.feed_input("images", [np.zeros((8, 8, 3), np.uint8)] * 2)
    np.asarray(made.run()[0].as_tensor())
    del made
    gc.collect()


_warm_up()
