"""Opens a model's graph in a TensorFlow session, and finds the tensors for the configured names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf
from galatea_worker.failures import ModelError
from tensorflow.core.protobuf import config_pb2

from . import configured, datatypes, files, saved, signatures
from .constants import Constants

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tensorflow.core.framework.node_def_pb2 import NodeDef

    from .settings import Settings

_v1 = tf.compat.v1
# Maximum number of cached callables, each compiled for one set of outputs.
_CALLABLES_MAX = 16
_PLACEHOLDERS = ("Placeholder", "PlaceholderWithDefault")


class Graph:
    """A graph in a session. Its input and output tensors have the configured names."""

    def __init__(
        self, session: _v1.Session, inputs: dict[str, str], outputs: dict[str, str], constants: Constants | None = None
    ) -> None:
        self._session = session
        self._constants = constants
        self._inputs = inputs
        self._outputs = outputs
        self._feeds = ()
        self._callables = {}

    def initialize(self, path: str) -> None:
        """Runs the initialization operations that a file lists."""
        for name in _init_ops(path):
            try:
                operation = self._session.graph.get_operation_by_name(name)
            except (KeyError, ValueError) as error:
                raise ModelError(str(error)) from None
            self._session.run(operation)

    def prepare(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Sets the order of the inputs, and the outputs that `run` may return."""
        self._feeds = [self._inputs[name] for name in inputs]
        self._all = tuple(outputs)
        self._callable(self._all)

    def run(self, inputs: Sequence[Any], wanted: frozenset[str]) -> dict[str, np.ndarray]:
        """Runs the graph. Returns the requested outputs by name, and possibly others."""
        names = tuple(name for name in self._all if name in wanted) or self._all
        if names not in self._callables and len(self._callables) >= _CALLABLES_MAX:
            names = self._all
        return dict(zip(names, self._callable(names)(*inputs)))

    def _callable(self, names: tuple[str, ...]) -> Any:
        found = self._callables.get(names)
        if found is None:
            options = config_pb2.CallableOptions(feed=self._feeds, fetch=[self._outputs[name] for name in names])
            # This private method is used because the public `make_callable` with feeds calls `run`, which takes 80 us longer.
            found = self._callables[names] = self._session._make_callable_from_options(options)
        return found


def _init_ops(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)["init_ops"]
    except OSError as error:
        raise ModelError("failed to open text file for read %s: %s" % (path, error.strerror)) from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError("'%s' is not a JSON object with an array 'init_ops': %s" % (path, error)) from None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ModelError("'init_ops' in '%s' is not an array of names" % path)
    return found


def open_graph(path: str, config: dict[str, Any], session_config: _v1.ConfigProto, model: str) -> Graph:
    """Opens a GraphDef. Its inputs are placeholders; its outputs may be any other nodes."""
    definition = files.read_graph(path)
    if not definition.node:
        raise ModelError("model %s has an empty network" % model)
    for node in definition.node:
        # Clears the device, because the device that the graph's author used may not exist on this machine.
        if "cpu" not in node.device.lower():
            node.device = ""
    _check_ports(config, definition.node, model)
    constants = None if _stay_in_graph(session_config) else Constants(definition)
    graph = tf.Graph()
    with graph.as_default():
        _v1.import_graph_def(definition, name="")
    del definition
    made = [name for one in config.get("batch_input", ()) for name in one.get("target_name", ())]
    inputs = {name: name + ":0" for name in (*(one["name"] for one in config["input"]), *made)}
    outputs = {one["name"]: one["name"] + ":0" for one in config["output"]}
    for kind, names in (("input", inputs), ("output", outputs)):
        for one in config[kind]:
            _check_type(graph, kind, one, names[one["name"]], model)
    return Graph(_v1.Session(graph=graph, config=session_config), inputs, outputs, constants)


def _stay_in_graph(session_config: _v1.ConfigProto) -> bool:
    """Returns whether constants must stay in the graph.

    XLA does not support moved constants, and a GPU would need a copy of them in each run.
    """
    return (
        session_config.graph_options.optimizer_options.global_jit_level > 0
        or session_config.gpu_options.visible_device_list != ""
    )


def _check_ports(config: dict[str, Any], nodes: Sequence[NodeDef], model: str) -> None:
    inputs = {node.name for node in nodes if node.op in _PLACEHOLDERS}
    made = configured.check_made_inputs(config, inputs)
    if len(inputs) < len(config["input"]) + made:
        raise ModelError(
            "unable to load model '%s', configuration expects %d inputs, model provides at most %d"
            % (model, len(config["input"]) + made, len(inputs))
        )
    configured.check_names("input", config["input"], inputs)
    configured.check_names("output", config["output"], {node.name for node in nodes} - inputs)


def _check_type(graph: tf.Graph, kind: str, one: dict[str, Any], tensor: str, model: str) -> None:
    """Checks the datatype of a tensor when the graph is opened. (Triton checks it only when the graph runs.)"""
    try:
        found = graph.get_tensor_by_name(tensor)
    except (KeyError, ValueError) as error:
        raise ModelError("unable to load model '%s', %s '%s': %s" % (model, kind, one["name"], error)) from None
    number = found.dtype.base_dtype.as_datatype_enum
    configured.check_datatype(kind, one, datatypes.NAMES.get(number) or datatypes.name_of(number), model)


def read_signature(path: str, settings: Settings, model: str, log: Any) -> signatures.Signature:
    """Returns the signature of a SavedModel without loading the model."""
    graph = signatures.tagged(files.read_saved_model(path).meta_graphs, settings.tag)
    return signatures.find_signature(graph, settings.signature, model, log)


def open_saved_model(
    path: str, config: dict[str, Any], session_config: _v1.ConfigProto, about: tuple[str, Settings, Any]
) -> Graph:
    """Opens a SavedModel with its variables and assets. `about` contains the model's name, settings and log."""
    model, settings, log = about
    message = files.read_saved_model(path)
    definition = signatures.tagged(message.meta_graphs, settings.tag)
    signature = signatures.find_signature(definition, settings.signature, model, log)
    configured.check_signature(config, signature, model)
    tags = list(definition.meta_info_def.tags)
    del definition
    graph = tf.Graph()
    session = _v1.Session(graph=graph, config=session_config)
    constants = saved.load_into_session(session, path, message, tags, stay_in_graph=_stay_in_graph(session_config))
    return Graph(
        session,
        {name: port.tensor for name, port in signature.inputs.items()},
        {name: port.tensor for name, port in signature.outputs.items()},
        constants,
    )
