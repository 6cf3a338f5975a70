"""Writes a graph that doubles a vector: `tensorflow_graph.py MODEL.GRAPHDEF`."""

import sys

import tensorflow as tf

graph = tf.Graph()
with graph.as_default():
    x = tf.compat.v1.placeholder(tf.float32, [None], name="x")
    tf.multiply(x, 2.0, name="y")
with open(sys.argv[1], "wb") as file:
    file.write(graph.as_graph_def().SerializeToString())
