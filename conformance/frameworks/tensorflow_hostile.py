"""Writes damaged and malicious model files: `tensorflow_hostile.py REPOSITORY MARKER SECRET`. No model may create the file MARKER, or
read the file SECRET.

Prints the names of those whose load must be rejected. Those with `flipped_` may load or fail; those with `asks_` load, and their
operations fail when they run.
"""

import logging
import os
import random
import shutil
import sys

import numpy as np
import tensorflow as tf
from damage import damaged, flipped
from tensorflow.core.framework import graph_pb2, types_pb2
from tensorflow.core.protobuf import saved_model_pb2

logging.getLogger("tensorflow").setLevel(logging.ERROR)
ROOT, MARKER, SECRET = sys.argv[1:]
v1 = tf.compat.v1
IO = """input { name: "x" data_type: TYPE_FP32 dims: [ -1, 4 ] }
output { name: "y" data_type: TYPE_%s dims: [ %s ] }
instance_group { count: 1 kind: KIND_CPU }
"""
FLIPPED = 200
CUT = 40


def put_config(name, platform, datatype="FP32", dims="-1, 4"):
    os.makedirs(os.path.join(ROOT, name, "1"))
    with open(os.path.join(ROOT, name, "config.pbtxt"), "w") as out:
        out.write('platform: "tensorflow_%s"\n%s' % (platform, IO % (datatype, dims)))


def put_graph(name, data, *about):
    put_config(name, "graphdef", *about)
    with open(os.path.join(ROOT, name, "1", "model.graphdef"), "wb") as out:
        out.write(data)


def graph_of(make):
    """Returns a GraphDef with the input `x` and the result of `make` as the output `y`."""
    graph = tf.Graph()
    with graph.as_default():
        make(v1.placeholder(tf.float32, [None, 4], name="x"))
    return graph.as_graph_def()


def changed(definition, change):
    other = graph_pb2.GraphDef()
    other.CopyFrom(definition)
    change({node.name: node for node in other.node}, other)
    return other.SerializeToString()


weights = np.random.default_rng(1).random((4, 4), dtype=np.float32)
good = graph_of(lambda x: tf.nn.relu(tf.matmul(x, tf.constant(weights, name="weights")), name="y"))
put_graph("good", good.SerializeToString())
data = good.SerializeToString()


def huge(shape):
    def change(nodes, _):
        tensor = nodes["weights"].attr["value"].tensor
        tensor.ClearField("tensor_content")
        tensor.float_val.append(1.0)
        del tensor.tensor_shape.dim[:]
        for size in shape:
            tensor.tensor_shape.dim.add(size=size)

    return changed(good, change)


def short(nodes, _):
    nodes["weights"].attr["value"].tensor.tensor_content = b"\0" * 7


def loop(nodes, _):
    nodes["MatMul"].input[0] = "y"


def unknown_type(nodes, _):
    nodes["x"].attr["dtype"].type = 77


def recursive(_, definition):
    """Makes a function that calls itself, called by the output."""
    function = definition.library.function.add()
    function.signature.name = "again"
    function.signature.input_arg.add(name="a", type=types_pb2.DT_FLOAT)
    function.signature.output_arg.add(name="b", type=types_pb2.DT_FLOAT)
    node = function.node_def.add(name="call", op="again", input=["a"])
    function.ret["b"] = "call:b:0"
    assert node.op == "again"
    next(one for one in definition.node if one.name == "y").op = "again"
    del next(one for one in definition.node if one.name == "y").attr["T"]


def deep():
    """Nests attributes deeper than a stack allows."""
    inner = b""
    for _ in range(30_000):
        inner = b"\x12" + varint(len(inner)) + inner
    return b"\x0a" + varint(len(inner)) + inner


def varint(number):
    out = b""
    while True:
        out += bytes([number & 127 | (128 if number > 127 else 0)])
        number >>= 7
        if number == 0:
            return out


refused = {
    "empty": b"",
    "text": b"this is no model",
    "truncated": data[: len(data) // 2],
    "without_end": data[:-3],
    "bomb": huge([1 << 20, 1 << 10]),
    "bomb_beyond": huge([1 << 40, 1 << 40]),
    "negative": huge([-3]),
    "short": changed(good, short),
    "loop": changed(good, loop),
    "unknown_type": changed(good, unknown_type),
    "unknown_operation": changed(good, lambda nodes, _: setattr(nodes["y"], "op", "NoSuchOperation")),
    "unknown_input": changed(good, lambda nodes, _: nodes["y"].input.__setitem__(0, "nobody")),
    "deep": deep(),
}
for name, one in refused.items():
    put_graph(name, one)
# TensorFlow may load or reject these files.
put_graph("flipped_recursive", changed(good, recursive))


class Linear(tf.Module):
    def __init__(self):
        super().__init__()
        self.weights = tf.Variable(weights)

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, "x")])
    def __call__(self, x):
        return {"y": x @ self.weights}


place = os.path.join(ROOT, "saved", "1", "model.savedmodel")
put_config("saved", "savedmodel")
module = Linear()
tf.saved_model.save(module, place, module.__call__)
VARIABLES = "variables/variables.data-00000-of-00001"
INDEX = "variables/variables.index"


def put_saved(name, file, change):
    put_config(name, "savedmodel")
    copy = os.path.join(ROOT, name, "1", "model.savedmodel")
    shutil.copytree(place, copy)
    with open(os.path.join(copy, file), "rb") as given:
        found = given.read()
    found = change(found)
    if found is None:
        os.remove(os.path.join(copy, file))
    else:
        with open(os.path.join(copy, file), "wb") as out:
            out.write(found)


saved = {
    "saved_truncated": ("saved_model.pb", lambda found: found[: len(found) // 2]),
    "saved_empty": ("saved_model.pb", lambda _: b""),
    "saved_absent": ("saved_model.pb", lambda _: None),
    "variables_truncated": (VARIABLES, lambda found: found[:40]),
    "variables_flipped": (VARIABLES, lambda found: found[:20] + bytes([found[20] ^ 16]) + found[21:]),
    "variables_absent": (VARIABLES, lambda _: None),
    "index_truncated": (INDEX, lambda found: found[: len(found) // 2]),
    "index_absent": (INDEX, lambda _: None),
}
for name, about in saved.items():
    put_saved(name, *about)


def write_file(_):
    tf.raw_ops.WriteFile(filename=MARKER, contents="written")
    return tf.constant([[0.0] * 4])


def starts():
    """A SavedModel that writes a file when it is loaded."""
    model = saved_model_pb2.SavedModel()
    with open(os.path.join(place, "saved_model.pb"), "rb") as given:
        model.ParseFromString(given.read())
    graph = model.meta_graphs[0]
    extra = graph_of(lambda x: v1.raw_ops.WriteFile(filename=MARKER, contents="started", name="write"))
    graph.graph_def.node.extend(node for node in extra.node if node.name != "x")
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "write"
    return model.SerializeToString()


put_saved("starts", "saved_model.pb", lambda _: starts())


def asks(name, make, datatype="STRING", dims="1"):
    put_graph("asks_" + name, graph_of(make).SerializeToString(), datatype, dims)


def after(operation):
    with tf.control_dependencies([operation]):
        return tf.constant([b"done"], name="y")


asks("read", lambda x: tf.reshape(tf.io.read_file(SECRET), [1], name="y"))
asks("read_password", lambda x: tf.reshape(tf.io.read_file("/etc/passwd"), [1], name="y"))
asks("read_process", lambda x: tf.reshape(tf.io.read_file("/proc/1/environ"), [1], name="y"))
asks("write", lambda x: after(tf.raw_ops.WriteFile(filename=MARKER, contents="written")))
asks("save", lambda x: after(tf.raw_ops.Save(filename=MARKER, tensor_names=["x"], data=[x])))
asks("write_memory", lambda x: after(tf.raw_ops.WriteFile(filename="/proc/self/mem", contents="written")))
asks("python", lambda x: v1.py_func(lambda: open(MARKER, "w").close() or b"", [], tf.string, name="y"))

for name, one in damaged(data, FLIPPED // 2, CUT):
    put_graph(name, one)
for index in range(FLIPPED // 4):
    put_saved(
        "flipped_saved_%d" % index, "saved_model.pb", lambda found, index=index: flipped(found, random.Random(index))
    )
    put_saved("flipped_index_%d" % index, INDEX, lambda found, index=index: flipped(found, random.Random(index)))
print("\n".join([*refused, *saved, "starts"]))
