"""The inputs and outputs of a SavedModel, as one of its signatures declares them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from galatea_worker.failures import ModelError

from . import datatypes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef, SignatureDef, TensorInfo

_DEFAULT_TAG = "serve"
_DEFAULT_SIGNATURE = "serving_default"
_OF_NO_MODEL = ("__saved_model_init_op", "__saved_model_train_op")


class Port(NamedTuple):
    """An input or output: its tensor in the graph, its datatype with the configuration's name, and its dimensions.

    As in Triton, the dimensions are empty for a scalar and for an unknown shape.
    """

    tensor: str
    datatype: str
    dims: tuple[int, ...]


class Signature(NamedTuple):
    """Inputs and outputs by name, sorted by name."""

    inputs: dict[str, Port]
    outputs: dict[str, Port]


def tagged(graphs: Iterable[MetaGraphDef], tag: str) -> MetaGraphDef:
    """Returns the graph that has only this tag. Raises ModelError with TensorFlow's text if there is none."""
    wanted = tag or _DEFAULT_TAG
    for graph in graphs:
        if set(graph.meta_info_def.tags) == {wanted}:
            return graph
    raise ModelError(
        "Could not find meta graph def matching supplied tags: { %s }. To inspect available tag-sets in the SavedModel, please use the "
        "SavedModel CLI: `saved_model_cli`" % wanted
    )


def find_signature(graph: MetaGraphDef, name: str, model: str, log: Any) -> Signature:
    """Returns the signature with this name; for "", the serving signature. Raises ModelError with Triton's text."""
    wanted = name or _DEFAULT_SIGNATURE
    found = graph.signature_def
    chosen = wanted if wanted in found else None
    if chosen is None and name == "":
        chosen = next((one for one in sorted(found) if one not in _OF_NO_MODEL), None)
        if chosen is not None:
            log.log_warn("unable to find serving signature '%s', using signature '%s'" % (wanted, chosen))
    if chosen is None:
        raise ModelError("unable to load model '%s', expected '%s' signature" % (model, wanted))
    return _signature(found[chosen], model)


def _signature(definition: SignatureDef, model: str) -> Signature:
    return Signature(
        _ports("input", definition.inputs, model),
        _ports("output", definition.outputs, model),
    )


def _ports(kind: str, infos: Mapping[str, TensorInfo], model: str) -> dict[str, Port]:
    found = {}
    for name in sorted(infos):
        info = infos[name]
        if info.WhichOneof("encoding") not in (None, "name"):
            raise ModelError("unable to process %s '%s' for '%s', it is not a dense tensor" % (kind, name, model))
        datatype = datatypes.NAMES.get(info.dtype)
        if datatype is None:
            raise ModelError(
                "unable to process %s '%s' for '%s', unsupported datatype '%s'"
                % (kind, name, model, datatypes.name_of(info.dtype))
            )
        found[name] = Port(info.name, datatype, tuple(dim.size for dim in info.tensor_shape.dim))
    return found


def allows_batches(ports: Iterable[Port]) -> bool:
    """Returns whether the first dimension is variable in every input and output that has dimensions."""
    return all(not port.dims or port.dims[0] == -1 for port in ports)


def shown(dims: Sequence[int]) -> str:
    """Returns the text of a shape, such as [-1,3]."""
    return "[%s]" % ",".join(str(dim) for dim in dims)
