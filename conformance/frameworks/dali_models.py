"""Writes a repository of DALI pipelines, and DALI's own results for requests: `dali_models.py REPOSITORY PHOTOGRAPH...`.

The pipelines are made for a GPU, as on a machine with one. The results come from pipelines of the same operators that
were made for the CPU and run by DALI alone. `cases.json` next to the repository has requests and results as files of raw bytes.
"""

import json
import os
import sys

import numpy as np
from nvidia.dali import fn, pipeline_def, types

ROOT, PHOTOGRAPHS = sys.argv[1], sys.argv[2:]
TENSORS = os.path.join(ROOT, "..", "tensors")
CASES = []
MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]
DATATYPES = {
    "bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "int8": "INT8", "int16": "INT16",
    "int32": "INT32", "int64": "INT64", "float16": "FP16", "float32": "FP32", "float64": "FP64",
}  # fmt: skip
NUMBERS = (
    types.BOOL, types.UINT8, types.UINT16, types.UINT32, types.UINT64, types.INT8, types.INT16, types.INT32, types.INT64, types.FLOAT16,
    types.FLOAT, types.FLOAT64,
)  # fmt: skip


def inception(device):
    encoded = fn.external_source(device="cpu", name="DALI_INPUT_0")
    images = fn.decoders.image(encoded, device="mixed" if device == "gpu" else "cpu", output_type=types.RGB)
    images = fn.resize(images, resize_x=299, resize_y=299)
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="HWC", crop=(299, 299), mean=MEAN, std=STD)


def thumbnails(device):
    """Has two inputs, two outputs and a copy to the device. The output has the size that the request sets."""
    encoded = fn.external_source(name="encoded", dtype=types.UINT8, ndim=1)
    size = fn.external_source(name="size", dtype=types.FLOAT, ndim=1)
    images = fn.decoders.image(encoded, device="mixed" if device == "gpu" else "cpu", output_type=types.RGB)
    return fn.resize(images, size=size, antialias=True), fn.peek_image_shape(encoded, device="cpu")


def loudness(device):
    """Computes spectrograms of sounds of any length."""
    sound = fn.external_source(name="sound", dtype=types.FLOAT, ndim=1)
    sound = sound.gpu() if device == "gpu" else sound
    spectrum = fn.spectrogram(sound, nfft=64, window_length=64, window_step=32, center_windows=False)
    return fn.reductions.max(spectrum, axes=[1]), spectrum


def frames(device):
    """Takes samples that are sequences of small pictures, which the server splits."""
    sequence = fn.external_source(name="sequence", dtype=types.UINT8, ndim=3)
    return (sequence.gpu() if device == "gpu" else sequence) + types.Constant(1, dtype=types.UINT8)


def one_more(number):
    def define(device):
        value = fn.external_source(name="value", dtype=number, ndim=1)
        value = value.gpu() if device == "gpu" else value
        return fn.cat(value, value, axis=0)

    return define


def rows_of(device):
    value = fn.external_source(name="value", dtype=types.FLOAT, ndim=1)
    value = value.gpu() if device == "gpu" else value
    return value * types.Constant(2.0)


def pipeline(define, device, batch=8, gives=None):
    """Serializes a pipeline. Its outputs have no type in the file unless `gives` has (type, dimensions) of each."""
    told = {} if gives is None else dict(zip(("output_dtype", "output_ndim"), map(list, zip(*gives))))
    return pipeline_def(batch_size=batch, num_threads=1, device_id=None, **told)(define)(device)


def put(name, made, config, file="model.dali"):
    directory = os.path.join(ROOT, name, "1")
    os.makedirs(directory)
    with open(os.path.join(directory, file), "wb") as out:
        out.write(made if isinstance(made, bytes) else made.serialize())
    if config is not None:
        with open(os.path.join(ROOT, name, "config.pbtxt"), "w") as out:
            out.write('backend: "dali"\n' + config)


def io(kind, name, datatype, dims):
    return '%s { name: "%s" data_type: TYPE_%s dims: %s }\n' % (kind, name, datatype, list(dims))


def bytes_of(value):
    if value.dtype == object:
        return b"".join(len(one).to_bytes(4, "little") + one for one in value.ravel())
    return np.ascontiguousarray(value).tobytes()


def tensor(name, value):
    where = "tensors/%d" % len(os.listdir(TENSORS))
    with open(os.path.join(ROOT, "..", where), "wb") as file:
        file.write(bytes_of(value))
    datatype = "BYTES" if value.dtype == object else DATATYPES[value.dtype.name]
    return {"name": name, "datatype": datatype, "shape": list(value.shape), "file": where}


def case(model, inputs, outputs):
    CASES.append(
        {
            "model": model,
            "inputs": [tensor(*one) for one in inputs.items()],
            "outputs": [tensor(*one) for one in outputs.items()],
        }
    )


def answers(define, inputs, batch=8):
    """Returns DALI's results for the samples of one request: each output as one array."""
    made = pipeline(define, "cpu", batch)
    made.build()
    for name, samples in inputs.items():
        made.feed_input(name, samples)
    return [np.stack([np.asarray(one[index]) for index in range(len(one))]) for one in made.run()]


def elements(samples):
    """Returns an array of BYTES with one element for each sample."""
    array = np.empty((len(samples), 1), object)
    array[:, 0] = [one.tobytes() for one in samples]
    return array


os.makedirs(TENSORS)
photographs = [np.fromfile(path, np.uint8) for path in PHOTOGRAPHS]
seed = io("input", "DALI_INPUT_0", "UINT8", [-1]) + io("output", "DALI_OUTPUT_0", "FP32", [299, 299, 3])
threads = 'parameters [ { key: "num_threads" value { string_value: "2" } } ]\n'
# Made for a GPU, as in AWS's articles.
put("inception", pipeline(inception, "gpu", 3), "max_batch_size: 256\n" + seed + threads)
# Four pictures are one batch.
waits = "dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 5000000 }\n"
put("inception_waits", pipeline(inception, "gpu", 3), "max_batch_size: 4\n" + seed + waits)
strings = seed.replace("UINT8 dims: [-1]", "STRING dims: [1]")
put("inception_strings", pipeline(inception, "gpu", 3), "max_batch_size: 256\n" + strings)
for photograph in photographs:
    (answer,) = answers(inception, {"DALI_INPUT_0": [photograph]})
    case("inception", {"DALI_INPUT_0": photograph[np.newaxis]}, {"DALI_OUTPUT_0": answer})
# Clients pad the pictures of one request to one length.
longest = max(len(one) for one in photographs)
filled = np.stack([np.pad(one, (0, longest - len(one))) for one in photographs])
(answer,) = answers(inception, {"DALI_INPUT_0": photographs})
case("inception", {"DALI_INPUT_0": filled}, {"DALI_OUTPUT_0": answer})
case("inception_strings", {"DALI_INPUT_0": elements(photographs)}, {"DALI_OUTPUT_0": answer})

# The configuration names only the backend: tensors, batch size and scheduler come from the pipeline.
given = [(types.UINT8, 3), (types.INT64, 1)]
put("thumbnails", pipeline(thumbnails, "gpu", gives=given), 'output { name: "thumbnail" }\noutput { name: "shape" }\n')
for size in ([20, 30], [64, 48]):
    sizes = np.array([size] * len(photographs), np.float32)
    for encoded, wanted in zip(photographs, sizes):
        answered = answers(thumbnails, {"encoded": [encoded], "size": [wanted]})
        case(
            "thumbnails",
            {"encoded": encoded[np.newaxis], "size": wanted[np.newaxis]},
            dict(zip(("thumbnail", "shape"), answered)),
        )

given = [(types.FLOAT, 1), (types.FLOAT, 2)]
put("loudness", pipeline(loudness, "gpu", gives=given), 'output { name: "loudest" }\noutput { name: "spectrum" }\n')
generator = np.random.default_rng(3)
for length in (64, 128, 5000, 777):
    sound = generator.standard_normal((2, length), np.float32)
    answered = answers(loudness, {"sound": list(sound)})
    case("loudness", {"sound": sound}, dict(zip(("loudest", "spectrum"), answered)))

split = 'parameters { key: "split_along_outer_axis" value { string_value: "picture" } }\noutput { name: "picture" }\n'
put("frames", pipeline(frames, "gpu", gives=[(types.UINT8, 3)]), split)
for count in (1, 4):
    sequence = generator.integers(0, 255, (2, count, 3, 5), np.uint8)
    case("frames", {"sequence": sequence}, {"picture": (sequence + 1).reshape(-1, 3, 5)})

for number in NUMBERS:
    name = "same_%s" % number.name.lower()
    made = pipeline(one_more(number), "gpu", gives=[(number, 1)])
    put(name, made, 'output { name: "twice" }\n')
    dtype = np.dtype(types.to_numpy_type(number))
    value = generator.integers(0, 2, (3, 7)).astype(dtype)
    case(name, {"value": value}, {"twice": np.concatenate([value, value], 1)})

doubled = 'max_batch_size: 0\noutput { name: "double" }\n'
put("unbatched", pipeline(rows_of, "gpu", 4, [(types.FLOAT, 1)]), doubled)
for count in (1, 4):
    value = generator.standard_normal((count, 6), np.float32)
    case("unbatched", {"value": value}, {"double": value * 2})

PROGRAM = b"""from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.triton import autoserialize


@autoserialize
@pipeline_def(batch_size=4, num_threads=1, device_id=0, output_dtype=types.FLOAT, output_ndim=1)
def double():
    value = fn.external_source(device="gpu", name="value", dtype=types.FLOAT, ndim=1)
    return value * types.Constant(2.0)
"""
value = generator.standard_normal((2, 9), np.float32)
named = 'output { name: "double" }\n'
for name, file, more in (
    ("written", "dali.py", ""),
    ("written_named", "double.py", 'default_model_filename: "double.py"\n'),
):
    put(name, PROGRAM, more + named, file)
    case(name, {"value": value}, {"double": value * 2})
put(
    "named",
    pipeline(rows_of, "gpu", gives=[(types.FLOAT, 1)]),
    'default_model_filename: "other.bin"\n' + named,
    "other.bin",
)
case("named", {"value": value}, {"double": value * 2})

# Without any configuration the file name determines the backend.
made = pipeline(lambda device: fn.copy(rows_of(device), name="double"), "gpu", gives=[(types.FLOAT, 1)])
put("nameless.dali", made, None)
case("nameless.dali", {"value": value}, {"double": value * 2})

# The loads of these models are rejected.
batch = "max_batch_size: 8\n"
value_in, value_out = io("input", "value", "FP32", [-1]), io("output", "double", "FP32", [-1])
put("refuse_type", pipeline(rows_of, "gpu"), batch + io("input", "value", "FP64", [-1]) + value_out)
put("refuse_rank", pipeline(rows_of, "gpu"), batch + io("input", "value", "FP32", [-1, 3]) + value_out)
put("refuse_input", pipeline(rows_of, "gpu"), batch + value_in + io("input", "other", "FP32", [-1]) + value_out)
put("refuse_outputs", pipeline(rows_of, "gpu"), batch + value_in + value_out + io("output", "more", "FP32", [-1]))
put("refuse_absent", b"", batch + value_in + value_out, "else.dali")
put("refuse_filename", b"", 'default_model_filename: "a\\"b"\n' + batch + value_in + value_out, "model.dali")
many = 'parameters { key: "num_threads" value { string_value: "%s" } }\n'
put("refuse_threads", pipeline(rows_of, "gpu"), batch + value_in + value_out + many % "many")
put("refuse_too_many_threads", pipeline(rows_of, "gpu"), batch + value_in + value_out + many % 5000)
split = 'parameters { key: "split_along_outer_axis" value { string_value: "none" } }\n'
put("refuse_split", pipeline(rows_of, "gpu"), batch + value_in + value_out + split)


def on_gpu_only(device):
    images = fn.external_source(device=device, name="value", dtype=types.UINT8, ndim=3, layout="HWC")
    return fn.experimental.median_blur(images, window_size=3)


def from_files(device):
    return fn.external_source(name="value", dtype=types.FLOAT, ndim=1), fn.readers.file(files=["/etc/passwd"])[0]


put("refuse_gpu_only", pipeline(on_gpu_only, "gpu"), "")
put("refuse_reader", pipeline(from_files, "cpu"), "")

with open(os.path.join(ROOT, "..", "cases.json"), "w") as out:
    json.dump(CASES, out)
