"""Writes archives of SavedModels with TensorFlow itself: `tensorflow_serving_models.py DIRECTORY`. `cases.json` next to them has requests of
the REST API, and the results of the saved functions in this process.
"""

import base64
import json
import logging
import os
import sys

import numpy as np
import tensorflow as tf

logging.getLogger("tensorflow").setLevel(logging.ERROR)
ROOT = sys.argv[1]
CASES = []
v1 = tf.compat.v1


def saved(path, module, signatures):
    tf.saved_model.save(module, os.path.join(ROOT, path), signatures)


def case(archive, body, expected, **said):
    CASES.append(
        {"archive": archive, "body": body if isinstance(body, str) else json.dumps(body), "expected": expected, **said}
    )


def listed(tensor):
    return tensor.numpy().tolist()


class Line(tf.Module):
    """Computes `scale * x + 2` for vectors of any length."""

    def __init__(self, scale):
        super().__init__()
        self.scale = tf.Variable(scale)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def one(self, x):
        return {"y": self.scale * x + 2.0}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, "x")])
    def three(self, x):
        return {"y": self.scale * x + 2.0}


def write_lines():
    for version, scale in ((1, 0.5), (2, 5.0), (10, 0.1)):
        line = Line(scale)
        # Versions are whole numbers with or without leading zeros.
        saved(
            "lines/line/%s" % ("00000010" if version == 10 else version),
            line,
            {"serving_default": line.one, "three": line.three},
        )
        saved("other/%d" % version, line, {"serving_default": line.three})
        x = tf.constant([1.0, 2.0, 1 / 3])
        chosen = {"X-Amzn-SageMaker-Custom-Attributes": "tfs-model-version=%d" % version}
        for headers in (chosen,) if version != 10 else (chosen, {}):
            case("lines", {"instances": listed(x)}, {"predictions": listed(line.one(x)["y"])}, headers=headers)
    rows = tf.constant([[1.0, 2.0, 3.0], [-1e9, 1e-9, 0.25]])
    truth = listed(line.three(rows)["y"])
    case("lines", {"signature_name": "three", "instances": listed(rows)}, {"predictions": truth})
    case("lines", {"signature_name": "three", "inputs": {"x": listed(rows)}}, {"outputs": truth})
    case("lines", {"signature_name": "three", "inputs": listed(rows)}, {"outputs": truth})
    for kind in ("application/json", "application/jsonlines", "application/jsons"):
        for body in (
            "[1, 2, 3]\n[-1e9, 1e-9, 0.25]",
            "[1, 2, 3] [-1e9, 1e-9, 0.25]",
            "[[1, 2, 3], [-1e9, 1e-9, 0.25]]",
        ):
            case("other", body, {"predictions": truth}, type=kind)
    case("other", "[1, 2, 3]", {"predictions": truth[:1]})
    case("other", '{"x": [1, 2, 3]}\n{"x": [-1e9, 1e-9, 0.25]}\n', {"predictions": truth}, type="application/jsonlines")
    case("other", "1,2,3\r\n-1e9, 1e-9 ,0.25\n\n", {"predictions": truth}, type="text/csv")
    case("other", {"instances": listed(rows)}, {"predictions": truth}, type="application/json; charset=utf-8")
    big = np.random.default_rng(3).normal(size=(500, 3)).astype(np.float32)
    case("other", {"instances": big.tolist()}, {"predictions": listed(line.three(big)["y"])})


class Together(tf.Module):
    """Returns the number of rows that were computed together."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, "x")])
    def __call__(self, x):
        return {"x": x, "rows": tf.fill(tf.shape(x), tf.shape(x)[0])}


class Pair(tf.Module):
    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 2], tf.float64, "a"),
            tf.TensorSpec([None], tf.int32, "b"),
            tf.TensorSpec([None, None], tf.bool, "c"),
        ]
    )
    def __call__(self, a, b, c):
        return {
            "sum": tf.reduce_sum(a, 1) + tf.cast(b, tf.float64),
            "twice": 2 * b,
            "not": tf.logical_not(c),
            "wide": tf.cast(b, tf.int64) * 2**40,
        }


def write_pair():
    pair = Pair()
    saved("pair/1", pair, pair.__call__)
    a, b, c = [[1.5, 2.25], [0.1, 1e300]], [7, -8], [[True], [False]]
    truth = {name: listed(value) for name, value in pair(tf.constant(a, tf.float64), b, c).items()}
    rows = [{"a": one, "b": two, "c": three} for one, two, three in zip(a, b, c)]
    case("pair", {"instances": rows}, {"predictions": [{name: truth[name][row] for name in truth} for row in range(2)]})
    case("pair", {"inputs": {"a": a, "b": b, "c": c}}, {"outputs": truth})


class Text(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def __call__(self, text):
        return {"joined": tf.strings.join([text, text], "|"), "raw_bytes": text, "length": tf.strings.length(text)}

    @tf.function(input_signature=[tf.TensorSpec([], tf.string, "text")])
    def alone(self, text):
        return {"length": tf.strings.length(text)}

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.string, "cells")])
    def table(self, cells):
        return {"cells": cells}


def write_text():
    text = Text()
    saved("text/a/b/text/3", text, {"serving_default": text.__call__, "alone": text.alone})
    for given in ([b"plain", 'quote " and \\ and é'.encode()], [b"", b"\n\t\x01"]):
        truth = text(tf.constant(given))
        expected = [
            {
                "joined": truth["joined"][row].numpy().decode(),
                "raw_bytes": {"b64": base64.b64encode(given[row]).decode()},
                "length": int(truth["length"][row]),
            }
            for row in range(2)
        ]
        case("text", {"instances": [one.decode() for one in given]}, {"predictions": expected})
        coded = [{"b64": base64.b64encode(one).decode().rstrip("=")} for one in given]
        case("text", {"instances": coded}, {"predictions": expected})
        case("text", {"instances": [{"text": one} for one in coded]}, {"predictions": expected})
    case("text", {"signature_name": "alone", "inputs": {"b64": "AAEC"}}, {"outputs": 3})
    case("text", {"signature_name": "alone", "inputs": {"text": "four"}}, {"outputs": 4})
    saved("table/1", text, text.table)
    cells = [["one", 'two, "three"'], ["y", "x"]]
    case("table", {"instances": cells}, {"predictions": cells})
    case("table", 'one,"two, ""three"""\ny,x\n', {"predictions": cells}, type="text/csv")


def write_examples():
    """Has the signatures of TensorFlow 1's estimators."""
    with tf.Graph().as_default(), v1.Session() as session:
        serialized = v1.placeholder(tf.string, [None], "examples")
        features = {
            "x": v1.FixedLenFeature([2], tf.float32),
            "n": v1.FixedLenFeature([1], tf.int64, default_value=[0]),
            "s": v1.FixedLenFeature([1], tf.string, default_value=[""]),
        }
        parsed = v1.parse_example(serialized, features)
        number = tf.reduce_sum(parsed["x"], 1) + tf.cast(parsed["n"][:, 0], tf.float32)
        scores = tf.stack([number, -number], 1)
        labels = tf.stack([parsed["s"][:, 0], tf.strings.join([parsed["s"][:, 0], "!"])], 1)
        info = v1.saved_model.build_tensor_info
        define = v1.saved_model.build_signature_def
        inputs = {"inputs": info(serialized)}
        signatures = {
            "serving_default": define(
                inputs, {"classes": info(labels), "scores": info(scores)}, "tensorflow/serving/classify"
            ),
            "regression": define(inputs, {"outputs": info(number[:, None])}, "tensorflow/serving/regress"),
            "scores_only": define(inputs, {"scores": info(scores)}, "tensorflow/serving/classify"),
            "raw": define({"x": info(serialized)}, {"y": info(scores)}, "tensorflow/serving/predict"),
        }
        builder = v1.saved_model.Builder(os.path.join(ROOT, "examples/1"))
        builder.add_meta_graph_and_variables(session, ["serve"], signatures)
        builder.save()
        given = [
            tf.train.Example(features=tf.train.Features(feature={
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=x)),
                "n": tf.train.Feature(int64_list=tf.train.Int64List(value=[n])),
                "s": tf.train.Feature(bytes_list=tf.train.BytesList(value=[s])),
            })).SerializeToString()
            for x, n, s in (([0.5, 0.25], 3, b"one"), ([1.0, -4.0], 3, b"two"))
        ]  # fmt: skip
        found, labels, numbers = session.run([scores, labels, number], {serialized: given})
    body = {"context": {"n": 3}, "examples": [{"x": [0.5, 0.25], "s": "one"}, {"x": [1.0, -4.0], "s": {"b64": "dHdv"}}]}
    pairs = [[[label.decode(), float(score)] for label, score in zip(*row)] for row in zip(labels, found)]

    def by(method):
        return {"X-Amzn-SageMaker-Custom-Attributes": "tfs-method=%s,tfs-custom-own=1" % method}

    case("examples", body, {"results": pairs}, headers=by("classify"))
    only = [[["", score] for _, score in row] for row in pairs]
    case("examples", {**body, "signature_name": "scores_only"}, {"results": only}, headers=by("classify"))
    case("examples", {**body, "signature_name": "regression"}, {"results": numbers.tolist()}, headers=by("regress"))
    coded = [{"b64": base64.b64encode(one).decode()} for one in given]
    case("examples", {"signature_name": "raw", "instances": coded}, {"predictions": found.tolist()})


write_lines()
together = Together()
saved("together/1", together, together.__call__)
write_pair()
write_text()
write_examples()
with open(os.path.join(ROOT, "cases.json"), "w") as file:
    json.dump(CASES, file)
