"""Opens a checked SavedModel in a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorflow.python.saved_model import path_helpers
from tensorflow.python.saved_model.loader_impl import SavedModelLoader

from .constants import Constants
from .files import nodes_of

if TYPE_CHECKING:
    import tensorflow as tf
    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel


class _Loader(SavedModelLoader):
    """Uses the parsed message; TensorFlow's own loader reads the file again, twice."""

    def __init__(self, directory: str, message: SavedModel) -> None:
        self._export_dir = directory
        self._variables_path = path_helpers.get_variables_path(directory)
        self._saved_model = message


def open_in(
    session: tf.compat.v1.Session, directory: str, message: SavedModel, tags: list[str], *, stay_in_graph: bool = False
) -> Constants | None:
    """Loads the graph with these tags, its variables and assets.

    The constants must be kept as long as the session is used. `message` is changed. The weights of a frozen SavedModel are constants: of
    96 MB in its graph TensorFlow had 412 in memory, and 1,240 while it loaded, which took 4.5 s; moved they take 197, 311 and 0.6 s. In a
    function they took 690, 1,490 and 5 s, now 292, 407 and 0.5 s. Variables are in memory once.
    """
    loader = _Loader(directory, message)
    graph = loader.get_meta_graph_def_from_tags(tags).graph_def
    # XLA has no operation for moved constants.
    constants = None if stay_in_graph or _asks_for_xla(graph) else Constants(graph)
    with session.graph.as_default():
        saver, _ = loader.load_graph(session.graph, tags, clear_devices=True)
        loader.restore_variables(session, saver)
        loader.run_init_ops(session, tags)
    return constants


def _asks_for_xla(graph: GraphDef) -> bool:
    """Returns whether a part of the graph is compiled by XLA regardless of the session."""
    parts = (*graph.library.function, *nodes_of(graph))
    return any(name.startswith("_Xla") and value.b for part in parts for name, value in part.attr.items())
