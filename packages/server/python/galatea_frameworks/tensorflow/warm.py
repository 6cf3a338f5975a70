"""Imported before workers are forked:

TensorFlow and the modules that load a model, which takes seconds and half a gigabyte. No graph is created here. TensorFlow 2.21 has one
thread after its import, and starts its first own thread, which never ends, with the first graph: after that an interpreter cannot be
forked. So each worker does TensorFlow's work for its first graph and session itself: 13 to 25 MB and a tenth of a second.
"""

from __future__ import annotations

import logging
import os

# Suppresses messages about processors and formats in the output of every model.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Suppresses deprecation warnings, which do not concern users of a model.
logging.getLogger("tensorflow").setLevel(logging.ERROR)

import tensorflow as tf  # noqa: E402

from . import program  # noqa: E402, F401 - imported for the workers

# Accessed here because TensorFlow's modules import each other at their first use.
_USED = (tf.Graph, tf.compat.v1.Session, tf.compat.v1.import_graph_def, tf.compat.v1.saved_model.loader.load)
