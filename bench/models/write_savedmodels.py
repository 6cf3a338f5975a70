"""write_savedmodels.py DIRECTORY COUNT PACKAGES: `galatea` and `oracle`, repositories of the same SavedModels.

`mlp_0`, `mlp_1` ... are small; `large` is Inception v3 for pictures of 96 by 96.
"""

import os
import shutil
import sys

import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))

CONFIG = """%s
max_batch_size: 64
input { name: "x" data_type: TYPE_FP32 dims: %s }
output { name: "y" data_type: TYPE_FP32 dims: %s }
dynamic_batching { }
instance_group { count: 1 kind: KIND_CPU }
%s"""


def put(repository, name, backend, dims, more=""):
    directory = os.path.join(repository, name, "1")
    os.makedirs(directory)
    with open(os.path.join(repository, name, "config.pbtxt"), "w") as file:
        file.write(CONFIG % (backend, *dims, more))
    return directory


def written(directory, kind, model, shape):
    path = os.path.join(directory, kind)

    @tf.function(input_signature=[tf.TensorSpec([None, *shape], tf.float32, "x")])
    def serve(x):
        return {"y": model(x, training=False)}

    module = tf.Module()
    # A module does not find the variables of a Keras 3 model by itself.
    module.variables_of_model = [variable.value for variable in model.variables]
    module.serve = serve
    tf.saved_model.save(module, path, serve)
    return path


def main():
    directory, count, packages = sys.argv[1:]
    tf.keras.utils.set_random_seed(1)
    dense = tf.keras.layers.Dense
    small = tf.keras.Sequential([tf.keras.Input([64]), dense(128, "relu"), dense(128, "relu"), dense(8)])
    large = tf.keras.applications.InceptionV3(weights=None, classes=1000, input_shape=(96, 96, 3))
    programs = {
        "small": (written(directory, "small", small, [64]), ([64], [8])),
        "large": (written(directory, "large", large, [96, 96, 3]), ([96, 96, 3], [1000])),
    }
    names = {"mlp_%d" % index: "small" for index in range(int(count))}
    names["large"] = "large"
    environment = 'parameters { key: "PACKAGES" value { string_value: "%s" } }\n' % packages
    for name, kind in names.items():
        path, dims = programs[kind]
        ours = put(os.path.join(directory, "galatea"), name, 'platform: "tensorflow_savedmodel"', dims)
        shutil.copytree(path, os.path.join(ours, "model.savedmodel"))
        theirs = put(os.path.join(directory, "oracle"), name, 'backend: "python"', dims, environment)
        shutil.copytree(path, os.path.join(theirs, "model.savedmodel"))
        shutil.copy(os.path.join(HERE, "savedmodel.py"), os.path.join(theirs, "model.py"))


main()
