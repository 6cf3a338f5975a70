"""Imported before workers are forked: TensorFlow and all that loads a model, which takes seconds and half a gigabyte.

No graph is made here. TensorFlow 2.21 imports with one thread, and starts the first of its own, which never ends, with the first graph:
after that an interpreter cannot be forked. So each worker makes for itself what TensorFlow makes at its first graph and session: 13 to
25 MB and a tenth of a second.
"""

from __future__ import annotations

import logging
import os

# Sentences about processors and formats, on the output of every model.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# What is deprecated in TensorFlow is not the business of who serves a model.
logging.getLogger("tensorflow").setLevel(logging.ERROR)

import tensorflow as tf  # noqa: E402

from . import program  # noqa: E402, F401 - imported for the workers

# TensorFlow's modules import each other when they are first used.
_USED = (tf.Graph, tf.compat.v1.Session, tf.compat.v1.import_graph_def, tf.compat.v1.saved_model.loader.load)
