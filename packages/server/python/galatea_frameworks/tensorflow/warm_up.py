"""Imported by the zygote before workers are forked.

Imports TensorFlow and the modules that load a model, which takes seconds and half a gigabyte. No graph is created here: with the first
graph, TensorFlow 2.21 starts a thread that never ends, and a process with several threads must not be forked. Each worker therefore
initializes its first graph and session itself, which takes 13 to 25 MB and a tenth of a second.
"""

from __future__ import annotations

import logging
import os

# Suppresses TensorFlow's messages about processors and formats, which would otherwise be in the output of every model.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Suppresses deprecation warnings, which do not concern the users of a model.
logging.getLogger("tensorflow").setLevel(logging.ERROR)

import tensorflow as tf  # noqa: E402

from . import program  # noqa: E402, F401 - imported for the workers

# Accessing these imports further modules, which TensorFlow imports lazily.
_USED = (tf.Graph, tf.compat.v1.Session, tf.compat.v1.import_graph_def, tf.compat.v1.saved_model.loader.load)
