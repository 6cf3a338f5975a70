"""Writes models of many kinds with TensorFlow itself: `tensorflow_models.py REPOSITORY`. `cases.json` next to it has requests and
TensorFlow's results in the process that made the model.
"""

import json
import logging
import os
import sys

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

logging.getLogger("tensorflow").setLevel(logging.ERROR)
ROOT = sys.argv[1]
DATA = os.path.join(ROOT, "..", "data")
v1 = tf.compat.v1
CASES = []
TYPES = {
    "BOOL": tf.bool, "UINT8": tf.uint8, "UINT16": tf.uint16, "UINT32": tf.uint32, "UINT64": tf.uint64, "INT8": tf.int8,
    "INT16": tf.int16, "INT32": tf.int32, "INT64": tf.int64, "FP16": tf.float16, "FP32": tf.float32, "FP64": tf.float64,
}  # fmt: skip
os.makedirs(DATA)
chance = np.random.default_rng(11)


def datatype_of(array):
    return "BYTES" if array.dtype == object else next(name for name, one in TYPES.items() if one == array.dtype)


def stored(name, array):
    file = "data/%d.bin" % len(os.listdir(DATA))
    with open(os.path.join(ROOT, "..", file), "wb") as out:
        if array.dtype == object:
            for one in array.ravel():
                out.write(len(one).to_bytes(4, "little") + one)
        else:
            out.write(np.ascontiguousarray(array).tobytes())
    return {"name": name, "datatype": datatype_of(array), "shape": list(array.shape), "file": file}


def case(model, inputs, outputs):
    CASES.append(
        {
            "model": model,
            "inputs": [stored(name, np.asarray(value)) for name, value in inputs.items()],
            "outputs": [stored(name, np.asarray(value)) for name, value in outputs.items()],
        }
    )


def io(kind, name, datatype, dims, rest=""):
    return '%s { name: "%s" data_type: TYPE_%s dims: %s %s }\n' % (kind, name, datatype, json.dumps(dims), rest)


def parameter(key, value):
    return 'parameters { key: "%s" value { string_value: "%s" } }\n' % (key, value)


ONE = "instance_group { count: 1 kind: KIND_CPU }\n"


def put_config(name, config):
    os.makedirs(os.path.join(ROOT, name, "1"), exist_ok=True)
    if config is not None:
        with open(os.path.join(ROOT, name, "config.pbtxt"), "w") as out:
            out.write(config)


def put_graph(name, graph_def, config, batch=0):
    put_config(name, 'platform: "tensorflow_graphdef"\nmax_batch_size: %d\n%s%s' % (batch, ONE, config))
    with open(os.path.join(ROOT, name, "1", "model.graphdef"), "wb") as out:
        out.write(graph_def.SerializeToString())


def put_saved(name, module, signatures, config=ONE):
    put_config(name, config)
    tf.saved_model.save(module, os.path.join(ROOT, name, "1", "model.savedmodel"), signatures)


class Layers(tf.Module):
    """A small encoder: embeddings, attention, a layer for each token, and the mean over tokens."""

    def __init__(self):
        super().__init__()
        draw = tf.random.Generator.from_seed(5)
        self.table = tf.Variable(draw.normal([100, 32]))
        self.parts = [tf.Variable(draw.normal([32, 32]) / 6) for _ in range(3)]
        self.out = tf.Variable(draw.normal([32, 8]))

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None], tf.int32, "tokens"),
            tf.TensorSpec([None, None], tf.float32, "mask"),
        ]
    )
    def __call__(self, tokens, mask):
        rows = tf.gather(self.table, tokens % 100)
        query, key, value = (rows @ part for part in self.parts)
        weights = tf.nn.softmax(query @ tf.transpose(key, [0, 2, 1]) / 6.0 + (mask[:, None, :] - 1) * 1e9)
        pooled = tf.reduce_sum((weights @ value) * mask[:, :, None], 1) / tf.reduce_sum(mask, 1, keepdims=True)
        return {"pooled": pooled @ self.out, "lengths": tf.cast(tf.reduce_sum(mask, 1), tf.int64)}


def write_encoder():
    module = Layers()
    put_saved("encoder", module, module.__call__)
    for rows, tokens in ((1, 7), (3, 5), (4, 12)):
        given = chance.integers(0, 100, (rows, tokens)).astype(np.int32)
        mask = (np.arange(tokens) < chance.integers(1, tokens + 1, (rows, 1))).astype(np.float32)
        truth = module(given, mask)
        # The configuration turns a scalar for each row into one dimension.
        lengths = truth["lengths"].numpy()[:, None]
        case("encoder", {"tokens": given, "mask": mask}, {"pooled": truth["pooled"], "lengths": lengths})
    # The same model with a complete configuration.
    put_config(
        "encoder_configured",
        'backend: "tensorflow"\nplatform: "tensorflow_savedmodel"\nmax_batch_size: 16\ndefault_model_filename: "weights"\n'
        + ONE
        + io("input", "mask", "FP32", [-1]) + io("input", "tokens", "INT32", [-1]) + io("output", "pooled", "FP32", [8])
        + parameter("TF_NUM_INTRA_THREADS", 1) + parameter("TF_NUM_INTER_THREADS", 1)
        + parameter("TF_USE_PER_SESSION_THREADS", "on"),
    )  # fmt: skip
    os.symlink(
        os.path.join(ROOT, "encoder", "1", "model.savedmodel"), os.path.join(ROOT, "encoder_configured", "1", "weights")
    )
    case("encoder_configured", {"tokens": given, "mask": mask}, {"pooled": module(given, mask)["pooled"]})


def write_inception():
    """Makes an Inception v3 for small pictures. Batch norms have the statistics of a few passes, so that outputs differ."""
    tf.keras.utils.set_random_seed(3)
    model = tf.keras.applications.InceptionV3(weights=None, classes=1001, input_shape=(96, 96, 3))
    pixels = chance.random((8, 96, 96, 3), dtype=np.float32)
    for _ in range(3):
        model(pixels, training=True)
    last = model.layers[-1]
    last.kernel.assign(last.kernel * 8)
    function = tf.function(lambda x: model(x, training=False)).get_concrete_function(
        tf.TensorSpec([None, 96, 96, 3], tf.float32, name="input")
    )
    frozen = convert_variables_to_constants_v2(function).graph.as_graph_def()
    config = io("input", "input", "FP32", [96, 96, 3], "format: FORMAT_NHWC") + io("output", "Identity", "FP32", [1001])
    put_graph("inception", frozen, config + "dynamic_batching { max_queue_delay_microseconds: 20000 }", 8)
    for rows in (1, 3):
        case("inception", {"input": pixels[:rows]}, {"Identity": model(pixels[:rows], training=False)})


def write_recurrent():
    tf.keras.utils.set_random_seed(4)
    model = tf.keras.Sequential([tf.keras.Input((None, 6)), tf.keras.layers.LSTM(12), tf.keras.layers.Dense(3)])
    put_config("recurrent", ONE)
    model.export(os.path.join(ROOT, "recurrent", "1", "model.savedmodel"), verbose=False)
    given = chance.random((2, 9, 6), dtype=np.float32)
    signature = tf.saved_model.load(os.path.join(ROOT, "recurrent", "1", "model.savedmodel")).signatures[
        "serving_default"
    ]
    (name,) = signature.structured_input_signature[1]
    case("recurrent", {name: given}, {"output_0": model(given)})


def write_types():
    graph = tf.Graph()
    values = {}
    with graph.as_default():
        for name, dtype in TYPES.items():
            given = v1.placeholder(dtype, [None, 3], name="in_" + name)
            tf.identity(tf.reverse(given, [1]), name="out_" + name)
            drawn = chance.integers(0, 2 if name == "BOOL" else 100, (2, 3))
            values["in_" + name] = drawn.astype(dtype.as_numpy_dtype)
    config = "".join(io("input", "in_" + name, name, [3]) + io("output", "out_" + name, name, [3]) for name in TYPES)
    put_graph("types", graph.as_graph_def(), config, 4)
    case("types", values, {name.replace("in_", "out_"): value[:, ::-1] for name, value in values.items()})


def write_strings():
    graph = tf.Graph()
    with graph.as_default():
        given = v1.placeholder(tf.string, [None, None], name="texts")
        tf.strings.upper(given, name="upper")
        tf.strings.length(given, name="length")
    config = (
        io("input", "texts", "STRING", [-1])
        + io("output", "upper", "STRING", [-1])
        + io("output", "length", "INT32", [-1])
    )
    put_graph("strings", graph.as_graph_def(), config, 8)
    texts = np.array([[b"one", b"", b"\xff\x00zero"], [b"d" * 5000, b"e", b"f"]], object)
    upper = np.array([[one.upper() for one in row] for row in texts], object)
    lengths = np.array([[len(one) for one in row] for row in texts], np.int32)
    case("strings", {"texts": texts}, {"upper": upper, "length": lengths})


class Table(tf.Module):
    """Looks words up in a file that is part of the model."""

    def __init__(self, file):
        super().__init__()
        found = tf.lookup.TextFileInitializer(
            tf.saved_model.Asset(file).asset_path,
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        )
        self.table = tf.lookup.StaticHashTable(found, -1)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "word")])
    def __call__(self, word):
        return {"index": self.table.lookup(word)}


def write_table():
    file = os.path.join(ROOT, "..", "words.txt")
    with open(file, "w") as out:
        out.write("zero\none\ntwo\n")
    module = Table(file)
    put_saved("table", module, module.__call__)
    words = np.array([b"two", b"zero", b"none"], object)
    case("table", {"word": words.reshape(3, 1)}, {"index": module(words)["index"].numpy().reshape(3, 1)})
    os.remove(file)


class Several(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])
    def double(self, x):
        return {"y": x * 2, "side": x + 1}

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])
    def triple(self, x):
        return {"y": x * 3}

    @tf.function(input_signature=[tf.TensorSpec([2, 2], tf.float32, "x")])
    def fixed(self, x):
        return {"y": tf.linalg.det(x)[None]}


def write_signatures():
    module = Several()
    given = chance.random((2, 2), dtype=np.float32)
    signatures = {"serving_default": module.double, "other": module.triple, "fixed": module.fixed}
    put_saved("doubled", module, signatures)
    case("doubled", {"x": given}, {"y": given * 2, "side": given + 1})
    case("doubled", {"x": given}, {"side": given + 1})
    put_saved("tripled", module, signatures, ONE + parameter("TF_SIGNATURE_DEF", "other"))
    case("tripled", {"x": given}, {"y": given * 3})
    put_saved("unbatched", module, signatures, ONE + parameter("TF_SIGNATURE_DEF", "fixed"))
    case("unbatched", {"x": given}, {"y": np.linalg.det(given)[None].astype(np.float32)})
    put_saved("unnamed", module, {"whatever": module.triple})
    case("unnamed", {"x": given}, {"y": given * 3})
    put_config("versions", "version_policy { all {} }")
    for version, name in (("1", "double"), ("7", "triple")):
        place = os.path.join(ROOT, "versions", version, "model.savedmodel")
        tf.saved_model.save(module, place, {"serving_default": getattr(module, name)})
    put_saved("one_output", module, signatures, ONE + 'output { name: "side" }')
    case("one_output", {"x": given}, {"side": given + 1})
    put_saved("hinted", module, signatures, ONE + io("input", "x", "FP32", [-1, 2]))
    case("hinted", {"x": given}, {"y": given * 2, "side": given + 1})
    put_saved("load_signature", module, signatures, ONE + parameter("TF_SIGNATURE_DEF", "none"))
    put_saved("load_dims", module, signatures, ONE + "max_batch_size: 4 " + io("input", "x", "FP32", [3]))
    put_saved("load_type", module, signatures, ONE + "max_batch_size: 4 " + io("input", "x", "INT32", [2]))
    put_saved("load_name", module, signatures, ONE + io("output", "z", "FP32", [2]))
    put_saved("load_tag", module, signatures, ONE + parameter("TF_GRAPH_TAG", "train"))
    put_saved("load_boolean", module, signatures, ONE + parameter("TF_USE_PER_SESSION_THREADS", "yes"))
    put_saved("load_threads", module, signatures, ONE + parameter("TF_NUM_INTRA_THREADS", "-1"))
    put_saved("load_integer", module, signatures, ONE + parameter("TF_NUM_INTER_THREADS", "two"))
    put_saved("load_share", module, signatures, ONE + parameter("MAX_SESSION_SHARE_COUNT", "0"))
    put_saved("load_unbatched", module, {"serving_default": module.fixed}, ONE + "max_batch_size: 4")
    put_saved("load_init", module, signatures, ONE + parameter("TF_INIT_OPS_FILE", "absent.json"))
    put_config(
        "load_absent",
        'platform: "tensorflow_savedmodel"\n' + io("input", "x", "FP32", [2]) + io("output", "y", "FP32", [2]),
    )
    put_config(
        "load_empty",
        'platform: "tensorflow_savedmodel"\n' + io("input", "x", "FP32", [2]) + io("output", "y", "FP32", [2]),
    )
    os.makedirs(os.path.join(ROOT, "load_empty", "1", "model.savedmodel"))


def write_tagged():
    graph = tf.Graph()
    place = os.path.join(ROOT, "tagged", "1", "model.savedmodel")
    put_config("tagged", ONE + parameter("TF_GRAPH_TAG", "mine"))
    with graph.as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 1], name="x")
        factor = v1.get_variable("factor", initializer=5.0)
        y = x * factor
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(place)
        signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
        builder.add_meta_graph_and_variables(session, ["mine"], {"serving_default": signature})
        builder.save()
    case("tagged", {"x": np.float32([[1], [2]])}, {"y": np.float32([[5], [10]])})


def write_initialized():
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        factor = v1.get_variable("factor", initializer=np.float32([2, 3]))
        tf.identity(x * factor, name="y")
        tf.group(v1.global_variables_initializer(), name="start")
    config = io("input", "x", "FP32", [2]) + io("output", "y", "FP32", [2])
    put_graph("initialized", graph.as_graph_def(), config + parameter("TF_INIT_OPS_FILE", "init_ops.json"), 4)
    with open(os.path.join(ROOT, "initialized", "init_ops.json"), "w") as out:
        json.dump({"init_ops": ["start"]}, out)
    case("initialized", {"x": np.float32([[1, 1]])}, {"y": np.float32([[2, 3]])})
    put_graph("uninitialized", graph.as_graph_def(), config, 4)


def write_small_graphs():
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None], name="x")
        # An operation that overwrites its input if no other operation uses it.
        tf.tensor_scatter_nd_update(x, [[0]], [-1.0], name="written")
        tf.identity(x, name="same")
        tf.reduce_sum(x, keepdims=True, name="row")
        # Large enough to be moved out of the graph.
        tf.constant(np.arange(20000, dtype=np.float32), name="constant")
        tf.cast(x, tf.complex64, name="complex")
        tf.cast(x, tf.bfloat16, name="brain")
        v1.placeholder_with_default(2.0, [], name="factor")
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(x < 100), ["too large:", x])]):
            tf.identity(x * 2, name="checked")
    definition = graph.as_graph_def()
    x = io("input", "x", "FP32", [-1])
    put_graph("written", definition, x + io("output", "written", "FP32", [-1]))
    put_graph("same", definition, x + io("output", "same", "FP32", [-1]))
    put_graph("constant", definition, x + io("output", "constant", "FP32", [20000]))
    put_graph(
        "compiled",
        definition,
        x
        + io("output", "same", "FP32", [-1])
        + io("output", "constant", "FP32", [20000])
        + "optimization { graph { level: 1 } }",
    )
    case("compiled", {"x": np.arange(1, 2001, dtype=np.float32)}, {"constant": np.arange(20000, dtype=np.float32)})
    put_graph("checked", definition, x + io("output", "checked", "FP32", [-1]))
    put_graph(
        "wrong_rows",
        definition,
        io("input", "x", "FP32", [1], "reshape { shape: [] }") + io("output", "row", "FP32", [1]),
        8,
    )
    values = np.arange(1, 2001, dtype=np.float32)
    case("same", {"x": values}, {"same": values})
    put_graph("load_graph_input", definition, io("input", "same", "FP32", [-1]) + io("output", "same", "FP32", [-1]))
    put_graph("load_graph_output", definition, x + io("output", "none", "FP32", [-1]))
    put_graph("load_graph_type", definition, io("input", "x", "INT32", [-1]) + io("output", "same", "FP32", [-1]))
    put_graph(
        "load_graph_many",
        definition,
        x + io("input", "y", "FP32", [1]) + io("input", "z", "FP32", [1]) + io("output", "same", "FP32", [-1]),
    )
    put_graph("load_graph_bf16", definition, x + io("output", "brain", "BF16", [-1]))
    put_graph("load_graph_complex", definition, x + io("output", "complex", "FP32", [-1]))
    put_graph("load_graph_empty", tf.Graph().as_graph_def(), x + io("output", "same", "FP32", [-1]))
    put_graph(
        "load_accelerator",
        definition,
        x
        + io("output", "same", "FP32", [-1])
        + 'optimization { execution_accelerators { cpu_execution_accelerator { name: "openvino" } } }',
    )
    steps = "".join(
        'step { model_name: "%s" model_version: -1 input_map { key: "x" value: "GIVEN" } output_map { key: "%s" value: "%s" } }\n'
        % one
        for one in (("written", "written", "WRITTEN"), ("same", "same", "SAME"))
    )
    put_config(
        "both",
        'platform: "ensemble"\n' + io("input", "GIVEN", "FP32", [-1]) + io("output", "WRITTEN", "FP32", [-1])
        + io("output", "SAME", "FP32", [-1]) + "ensemble_scheduling {\n%s}\n" % steps,
    )  # fmt: skip


def ragged(config, kinds, outputs):
    made = "".join(
        'batch_input { kind: %s target_name: "%s" data_type: TYPE_%s source_input: "values" }\n' % one for one in kinds
    )
    values = io("input", "values", "FP32", [-1], "allow_ragged_batch: true")
    batching = "max_batch_size: 4\ndynamic_batching { max_queue_delay_microseconds: 30000000 }\n"
    return ONE + batching + config + values + made + outputs


def write_ragged():
    """Returns for each request the sum of its values, and the doubled values."""

    class Sums(tf.Module):
        @tf.function(
            input_signature=[
                tf.TensorSpec([None], tf.float32, "values"),
                tf.TensorSpec([None], tf.int32, "splits"),
                tf.TensorSpec([None], tf.float32, "counts"),
                tf.TensorSpec([None, None], tf.int32, "shapes"),
                tf.TensorSpec([None], tf.float32, "longest"),
            ]
        )
        def __call__(self, values, splits, counts, shapes, longest):
            rows = tf.RaggedTensor.from_row_splits(values, splits)
            told = [
                counts,
                tf.cast(shapes[:, 0], tf.float32),
                tf.fill(tf.shape(counts), tf.cast(tf.shape(longest)[0], tf.float32)),
            ]
            return {"sums": tf.reduce_sum(rows, 1), "told": tf.stack(told, 1), "doubled": 2.0 * values}

    kinds = [
        ("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", "splits", "INT32"),
        ("BATCH_ELEMENT_COUNT", "counts", "FP32"),
        ("BATCH_ITEM_SHAPE", "shapes", "INT32"),
        ("BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", "longest", "FP32"),
    ]
    outputs = (
        io("output", "sums", "FP32", [1], "reshape { shape: [] }")
        + io("output", "told", "FP32", [3])
        + io("output", "doubled", "FP32", [-1])
        + 'batch_output { target_name: "doubled" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "values" }\n'
    )
    module = Sums()
    put_saved("ragged", module, module.__call__, ragged('platform: "tensorflow_savedmodel"\n', kinds, outputs))
    put_saved(
        "load_ragged_name",
        module,
        module.__call__,
        ragged('platform: "tensorflow_savedmodel"\n', [("BATCH_ELEMENT_COUNT", "lengths", "FP32")], outputs),
    )
    with tf.Graph().as_default() as graph:
        values = v1.placeholder(tf.float32, [None], "values")
        ends = v1.placeholder(tf.int32, [None], "ends")
        shapes = v1.placeholder(tf.int32, [None], "shapes")
        tf.stack([tf.gather(tf.cumsum(values), ends - 1), tf.cast(shapes, tf.float32)], 1, name="told")
    kinds = [
        ("BATCH_ACCUMULATED_ELEMENT_COUNT", "ends", "INT32"),
        ("BATCH_ITEM_SHAPE_FLATTEN", "shapes", "INT32"),
    ]
    definition = ragged("", kinds, io("output", "told", "FP32", [2]))
    put_graph("ragged_graph", graph.as_graph_def(), definition.replace(ONE, "").replace("max_batch_size: 4\n", ""), 4)


class Frozen(tf.Module):
    """A model whose weights are 16 MB of constants of its function."""

    weights = chance.normal(size=(2048, 2048)).astype(np.float32) / 45

    @tf.function(input_signature=[tf.TensorSpec([None, 2048], tf.float32, "x")])
    def __call__(self, x):
        return {"y": tf.nn.relu(x @ tf.constant(self.weights)) + tf.constant(self.weights[:1])}


class FrozenCompiled(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 2048], tf.float32, "x")], jit_compile=True)
    def __call__(self, x):
        return {"y": tf.nn.relu(x @ tf.constant(Frozen.weights))}


def write_frozen():
    x = chance.normal(size=(2, 2048)).astype(np.float32)
    for name, module in (("frozen", Frozen()), ("frozen_compiled", FrozenCompiled())):
        put_saved(name, module, module.__call__)
        case(name, {"x": x}, {"y": module(x)["y"]})


write_ragged()
write_frozen()
write_encoder()
write_inception()
write_recurrent()
write_types()
write_strings()
write_table()
write_signatures()
write_tagged()
write_initialized()
write_small_graphs()
with open(os.path.join(ROOT, "..", "cases.json"), "w") as out:
    json.dump(CASES, out)
