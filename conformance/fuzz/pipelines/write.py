"""Writes the pipelines of this folder with DALI 2.4 (`galatea model add dali`). DALI writes down where they were defined, so in this folder:

python -c "exec(compile(open('write.py').read(), 'write.py', 'exec'))"
"""

from nvidia.dali import fn, pipeline_def, types


def decode():
    images = fn.decoders.image(fn.external_source(name="value", dtype=types.UINT8, ndim=1), device="mixed")
    images = fn.resize(images, resize_x=8, resize_y=8)
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="HWC", mean=[1.0, 2.0, 3.0])


def double():
    return fn.external_source(name="value", dtype=types.FLOAT, ndim=1).gpu() * types.Constant(2.0)


def video():
    return fn.experimental.inputs.video(name="value", sequence_length=2)


for define in (decode, double, video):
    made = pipeline_def(batch_size=4, num_threads=1, device_id=None)(define)()
    with open(define.__name__ + ".dali", "wb") as out:
        out.write(made.serialize())
