"""Checks a model file before TensorFlow reads it.

TensorFlow allocates any size that a file declares, and its own checks crash the process. A graph can contain any operation, so the kernel
restricts its access to files, processes and network (`galatea_worker/reading_only.py`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from galatea_worker.failures import ModelError
from google.protobuf.message import DecodeError
from tensorflow.core.framework import graph_pb2, types_pb2
from tensorflow.core.protobuf import saved_model_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tensorflow.core.framework.node_def_pb2 import NodeDef
    from tensorflow.core.framework.tensor_pb2 import TensorProto

# Maximum size in bytes of a protobuf message.
_FILE_BYTES_MAX = (1 << 31) - 1
# Limit in bytes of the total size of constants that are stored as one value for all elements of a tensor.
_EXPANDED_BYTES_MAX = 1 << 30
_ELEMENT_BYTES_MAX = 16
_SAVED_MODEL = "saved_model.pb"
# This text format of a SavedModel is not supported: no tool writes it by default, and checking it would need a parser.
_SAVED_MODEL_TEXT = "saved_model.pbtxt"


def read_graph(path: str) -> graph_pb2.GraphDef:
    """Reads the GraphDef in a file. Raises ModelError for an invalid one."""
    graph = _parsed(graph_pb2.GraphDef, path)
    _check_graphs([graph])
    return graph


def read_saved_model(directory: str) -> saved_model_pb2.SavedModel:
    """Reads a SavedModel and checks that it has at least one graph. Raises ModelError for an invalid one."""
    path = os.path.join(directory, _SAVED_MODEL)
    if not os.path.isfile(path):
        if os.path.isfile(os.path.join(directory, _SAVED_MODEL_TEXT)):
            raise ModelError("'%s' is not served: save the model with a binary %s" % (_SAVED_MODEL_TEXT, _SAVED_MODEL))
        raise ModelError("Could not find SavedModel .pb or .pbtxt at supplied export directory path: %s" % directory)
    found = _parsed(saved_model_pb2.SavedModel, path)
    if not found.meta_graphs:
        raise ModelError("'%s' has no graph" % path)
    _check_graphs(one.graph_def for one in found.meta_graphs)
    return found


def _parsed(kind: type, path: str) -> Any:
    if os.path.getsize(path) > _FILE_BYTES_MAX:
        raise ModelError("'%s' has more than %d bytes" % (path, _FILE_BYTES_MAX))
    with open(path, "rb") as file:
        data = file.read()
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise ModelError("Can't parse %s as binary proto: %s" % (path, error)) from None


def _check_graphs(graphs: Iterable[graph_pb2.GraphDef]) -> None:
    expanded = 0
    for graph in graphs:
        for node in all_nodes(graph):
            for tensor in _tensors(node):
                expanded += _expanded_bytes(node.name, tensor)
                if expanded > _EXPANDED_BYTES_MAX:
                    raise ModelError(
                        "its constants would become more than %d MiB larger than they are written"
                        % (_EXPANDED_BYTES_MAX >> 20)
                    )


def all_nodes(graph: graph_pb2.GraphDef) -> Iterator[NodeDef]:
    """Yields the nodes of a graph and of its functions."""
    yield from graph.node
    for function in graph.library.function:
        yield from function.node_def


def _tensors(node: NodeDef) -> Iterator[TensorProto]:
    for value in node.attr.values():
        if value.HasField("tensor"):
            yield value.tensor
        elif value.HasField("list"):
            yield from value.list.tensor


def _expanded_bytes(name: str, tensor: TensorProto) -> int:
    """Returns by how many bytes a tensor is larger in memory than in the file. Raises ModelError for an invalid shape."""
    elements = 1
    for dim in tensor.tensor_shape.dim:
        if dim.size < 0:
            raise ModelError("constant '%s' has a negative dimension" % name)
        elements *= dim.size
    if tensor.dtype not in types_pb2.DataType.values():
        raise ModelError("constant '%s' has the unknown datatype %d" % (name, tensor.dtype))
    return max(0, min(elements * _ELEMENT_BYTES_MAX, 1 << 62) - _ELEMENT_BYTES_MAX * tensor.ByteSize())
