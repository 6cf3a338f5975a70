"""Writes a repository of damaged and malicious DALI files: `dali_hostile.py REPOSITORY MARKER`.

`good` is valid. Prints the names of the models whose load must fail, one on each line. Code in a file would write MARKER.
"""

import os
import sys

from damage import damaged
from nvidia.dali import fn, pipeline_def, types

ROOT, MARKER = sys.argv[1:]
FLIPPED = 240
CUT = 60


def put(name, data, file="model.dali"):
    directory = os.path.join(ROOT, name, "1")
    os.makedirs(directory)
    with open(os.path.join(directory, file), "wb") as out:
        out.write(data)
    with open(os.path.join(ROOT, name, "config.pbtxt"), "w") as out:
        out.write('backend: "dali"\nmax_batch_size: 4\ninput { name: "value" data_type: TYPE_FP32 dims: -1 }\n')
        out.write('output { name: "double" data_type: TYPE_FP32 dims: -1 }\n')


@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def double():
    return fn.external_source(name="value", dtype=types.FLOAT, ndim=1).gpu() * types.Constant(2.0)


@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def huge():
    return fn.external_source(name="value", dtype=types.FLOAT, ndim=1)[0] * fn.full(1.0, shape=[1 << 30, 1 << 12])


def varint(value):
    out = bytearray()
    value %= 2**64
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def edge(name, device="cpu"):
    return field(1, name) + field(2, device) + field(3, 0)


def argument(name, value):
    kind, number = ("string", 5) if isinstance(value, str) else ("int64", 4)
    return field(4, field(1, name) + field(2, kind) + field(number, value) + field(8, 0))


def operator(name, inputs, outputs, *arguments, instance=None):
    body = field(1, name) + b"".join(field(2, edge(one)) for one in inputs)
    body += b"".join(field(3, edge(one)) for one in outputs) + b"".join(arguments)
    return field(5, body + field(5, instance or outputs[0]))


def whole(*operators, output="double", threads=1, batch=4, more=b""):
    return field(1, threads) + field(2, batch) + b"".join(operators) + field(7, edge(output)) + field(8, -99999) + more


source = operator("ExternalSource", [], ["value"], argument("dtype", 9), argument("ndim", 1))
copy = operator("Copy", ["value"], ["double"])
good = double().serialize()
put("good", good)
put("by_hand", whole(source, copy))
put("of_2021", whole(operator("_ExternalSource", [], ["value"]), copy))
# Hints about memory have no effect.
put(
    "hints",
    whole(
        source,
        operator("Copy", ["value"], ["double"], argument("bytes_per_sample_hint", 1 << 50)),
        more=field(15, 1 << 50),
    ),
)
# These models load, and fail when they run.
put("bad_type", whole(source, operator("Cast", ["value"], ["double"], argument("dtype", 999))))
put("huge", huge().serialize())
nested = field(1, "deep") + field(8, 1)
for _ in range(5000):
    nested = field(7, nested) + field(1, "deep") + field(8, 1)
function = argument("function_id", 0x7F0012345678)
refused = {
    "empty": b"",
    "text": b"this is no pipeline, and never was one",
    "truncated": good[: len(good) // 2],
    "without_end": good[:-3],
    "no_operators": field(1, 1) + field(2, 4),
    "endless_number": b"\x08" + b"\xff" * 30,
    "huge_field": b"\x2a\xff\xff\xff\xff\xff\xff\xff\xff\x7f" + b"x" * 100,
    "other_types": field(5, 7) + field(2, "four"),
    "not_text": whole(source, operator("Copy", ["value"], ["double"]).replace(b"Copy", b"\xff\xfe\xfd\xfc")),
    "deep": whole(source, operator("Copy", ["value"], ["double"], field(4, nested))),
    "python_function": whole(source, operator("PythonFunction", ["value"], ["double"], function)),
    "python_function_inner": whole(source, operator("_PythonFunction", ["value"], ["double"], function)),
    "numba": whole(source, operator("NumbaFuncImpl", ["value"], ["double"], argument("run_fn", 0x1234))),
    "jax": whole(source, operator("_JaxFunction", ["value"], ["double"], function)),
    "reads": whole(source, operator("readers__File", [], ["double", "label"], argument("files", "/etc/passwd"))),
    "reads_numpy": whole(source, operator("NumpyReader", [], ["double"], argument("files", "/etc/passwd"))),
    "writes": whole(source, operator("DumpImage", ["value"], ["double"], argument("suffix", MARKER))),
    "takes_streams": whole(operator("experimental__inputs__Video", [], ["value"]), copy),
    "unknown": whole(source, operator("no__such__Operator", ["value"], ["double"])),
    "threads": whole(source, copy, threads=1 << 30),
    "negative_threads": whole(source, copy, threads=-7),
    "circle": whole(source, operator("Copy", ["other"], ["double"]), operator("Copy", ["double"], ["other"])),
    "itself": whole(source, operator("Copy", ["double"], ["double"])),
    # These files crash DALI 2.4.
    "no_value": whole(
        source, operator("Copy", ["value"], ["double"], field(4, field(1, "x") + field(2, "string") + field(8, 0)))
    ),
    "uneven_origin": good.replace(b"_origin_stack_lineno", b"_origin_stack_lines_"),
    "no_such_edge": whole(source, operator("Copy", ["nothing"], ["double"])),
    "no_such_output": whole(source, copy, output="nothing"),
    "twice": whole(source, copy, copy),
    "too_many": whole(source, *[operator("Copy", ["value"], ["x%d" % one]) for one in range(10_001)], copy),
    "no_input": whole(operator("Constant", [], ["double"], argument("dtype", 9))),
}
for name, data in refused.items():
    put(name, data)
marks = "open(%r, 'w').close()\n" % MARKER
more = {
    "program_without": b"value = 1\n",
    "program_fails": b"raise ValueError('not today')\n",
    "program_ends": b"import os\nos._exit(3)\n",
    "program_no_python": b"this is no program\n",
}
for name, data in more.items():
    put(name, data, "dali.py")
# A serialized file is data: Python code in it is not run.
put("python_as_data", marks.encode())

for name, data in damaged(good, FLIPPED, CUT):
    put(name, data)
print("\n".join([*refused, *more, "python_as_data"]))
