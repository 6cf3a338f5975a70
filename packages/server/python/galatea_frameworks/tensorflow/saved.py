"""Loads a validated SavedModel into a TensorFlow session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorflow.python.saved_model import path_helpers
from tensorflow.python.saved_model.loader_impl import SavedModelLoader

from .constants import Constants
from .files import all_nodes

if TYPE_CHECKING:
    import tensorflow as tf
    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel


class _Loader(SavedModelLoader):
    """Loads an already parsed SavedModel. TensorFlow's own loader would read the file two more times."""

    def __init__(self, directory: str, message: SavedModel) -> None:
        self._export_dir = directory
        self._variables_path = path_helpers.get_variables_path(directory)
        self._saved_model = message


def load_into_session(
    session: tf.compat.v1.Session, directory: str, message: SavedModel, tags: list[str], *, stay_in_graph: bool = False
) -> Constants | None:
    """Loads the graph with these tags, its variables and assets. Changes `message`.

    Returns the constants that were moved out of the graph; they must be kept as long as the session is used. The weights of a frozen
    SavedModel are constants. A graph with 96 MB of weights used 412 MB (1,240 MB during the load) and took 4.5 s to load. With moved
    constants it is 197 MB, 311 MB and 0.6 s. With the graph in a function it was 690 MB, 1,490 MB and 5 s, and is 292 MB, 407 MB and 0.5 s.
    Variables need no move, because TensorFlow keeps them in memory only once.
    """
    loader = _Loader(directory, message)
    graph = loader.get_meta_graph_def_from_tags(tags).graph_def
    # XLA does not support moved constants.
    constants = None if stay_in_graph or _requests_xla(graph) else Constants(graph)
    with session.graph.as_default():
        saver, _ = loader.load_graph(session.graph, tags, clear_devices=True)
        loader.restore_variables(session, saver)
        loader.run_init_ops(session, tags)
    return constants


def _requests_xla(graph: GraphDef) -> bool:
    """Returns whether a node of the graph or a function requires XLA, regardless of the session's settings."""
    parts = (*graph.library.function, *all_nodes(graph))
    return any(name.startswith("_Xla") and value.b for part in parts for name, value in part.attr.items())
