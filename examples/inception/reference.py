"""Computes the scores of a frozen Inception graph with TensorFlow alone: `reference.py GRAPHDEF FILE...` prints a list of scores for each.

A file is a photograph (decoded and scaled by TensorFlow) or an array of prepared pixels (`.npy`).
"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

MEAN = np.array([0.485, 0.456, 0.406], np.float32) * 255
STD = np.array([0.229, 0.224, 0.225], np.float32) * 255


def pixels_of(path):
    if path.endswith(".npy"):
        return np.load(path)
    # The most exact decoding of the standard; a scaled picture has whole numbers.
    picture = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, dct_method="INTEGER_ACCURATE")
    scaled = tf.image.resize(picture, (299, 299), antialias=True).numpy()
    return (np.clip(np.round(scaled), 0, 255) - MEAN) / STD


graph_def = tf.compat.v1.GraphDef()
with open(sys.argv[1], "rb") as file:
    graph_def.ParseFromString(file.read())
pixels = np.stack([pixels_of(path) for path in sys.argv[2:]]).astype(np.float32)
with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
    tf.import_graph_def(graph_def, name="")
    scores = session.run("InceptionV3/Predictions/Softmax:0", {"input:0": pixels})
print(json.dumps(scores.astype(float).tolist()))
