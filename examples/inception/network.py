"""Inception v3 as a frozen graph: `network.py GRAPHDEF LABELS PHOTOGRAPH...`.

The architecture is that of Keras. The script does not download trained weights: its weights come from a
fixed seed, so the classes of a picture are always the same and meaningless. A purely random network would give about
equal scores to all pictures, so its batch norms have statistics of the photographs, and its last layer is scaled until classes differ.
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

graphdef, labels, *photographs = sys.argv[1:]
CLASSES = 1001
MEAN = np.array([0.485, 0.456, 0.406], np.float32) * 255
STD = np.array([0.229, 0.224, 0.225], np.float32) * 255
SPREAD = 3.0

tf.keras.utils.set_random_seed(17)
network = tf.keras.applications.InceptionV3(weights=None, classes=CLASSES, classifier_activation=None)
pictures = [tf.io.decode_jpeg(tf.io.read_file(path), channels=3) for path in photographs]


def crops(count):
    """Returns parts of the photographs in all orientations."""
    found = []
    for index in range(count):
        picture = pictures[index % len(pictures)]
        side = min(picture.shape[:2]) * (3 + index % 3) // 5
        part = tf.image.random_flip_left_right(tf.image.random_crop(picture, (side, side, 3)))
        found.append((tf.image.resize(part, (299, 299), antialias=True) - MEAN) / STD)
    return tf.stack(found)


norms = [layer for layer in network.layers if isinstance(layer, tf.keras.layers.BatchNormalization)]
for one in range(3):
    for norm in norms:
        # The mean over the passes.
        norm.momentum = one / (one + 1)
    network(crops(12), training=True)
last = network.layers[-1]
last.kernel.assign(last.kernel * (SPREAD / tf.math.reduce_std(network(crops(12), training=False))))


@tf.function
def classify(pixels):
    return tf.nn.softmax(network(pixels, training=False), name="InceptionV3/Predictions/Softmax")


taken = tf.TensorSpec([None, 299, 299, 3], tf.float32, name="input")
frozen = convert_variables_to_constants_v2(classify.get_concrete_function(taken))
with open(graphdef, "wb") as out:
    out.write(frozen.graph.as_graph_def().SerializeToString())
with open(labels, "w") as out:
    out.write("".join("class %d\n" % one for one in range(CLASSES)))
