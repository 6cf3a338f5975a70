"""One version of a model: its graph in a TensorFlow session, and its signatures."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import tensorflow as tf
from galatea_worker.failures import ModelError, is_out_of_memory
from tensorflow.core.protobuf import config_pb2, meta_graph_pb2

from galatea_frameworks.tensorflow import files, saved, signatures

from .errors import ServingError, status_of

if TYPE_CHECKING:
    from typing import Any

    from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

_v1 = tf.compat.v1
_TAG = "serve"
DEFAULT_SIGNATURE = "serving_default"
_OF_NO_MODEL = ("__saved_model_init_op", "__saved_model_train_op")
# Maximum number of signatures with a cached callable.
_CALLABLES_MAX = 16
_SHOWN_MAX = 1000


class Port(NamedTuple):
    """An input or output: its tensor in the graph, and its datatype."""

    tensor: str
    datatype: int


class Signature:
    """The inputs and outputs of the model, by name."""

    def __init__(self, definition: SignatureDef) -> None:
        self._definition = definition
        self.inputs = _ports(definition.inputs)
        self.outputs = _ports(definition.outputs)

    def shown(self) -> str:
        """Returns the beginning of the signature's text form."""
        return str(self._definition)[:_SHOWN_MAX]


def _ports(infos: Any) -> dict[str, Port]:
    return {name: Port(infos[name].name, infos[name].dtype) for name in sorted(infos)}


class Servable:
    """A loaded model version. Its methods may be called by several threads."""

    def __init__(self, name: str, version: int, path: str, threads: tuple[int, int]) -> None:
        """Loads the version.

        `threads` contains the number of threads for each operation, and the number of concurrent operations; 0 selects TensorFlow's
        default. Raises ModelError.
        """
        self.name = name
        self.version = version
        self._callables = {}
        self._lock = threading.Lock()
        try:
            self._open(path, threads)
        except (ModelError, MemoryError) as error:
            if isinstance(error, ModelError):
                raise ModelError("failed to load version %d of model '%s': %s" % (version, name, error)) from None
            raise
        except Exception as error:
            if is_out_of_memory(error):
                raise
            raise ModelError("failed to load version %d of model '%s': %s" % (version, name, _text(error))) from error

    def _open(self, path: str, threads: tuple[int, int]) -> None:
        message = files.read_saved_model(path)
        definition = signatures.tagged(message.meta_graphs, _TAG)
        self.signatures = {
            name: Signature(one) for name, one in definition.signature_def.items() if name not in _OF_NO_MODEL
        }
        del definition
        intra, inter = threads
        config = _v1.ConfigProto(
            intra_op_parallelism_threads=intra, inter_op_parallelism_threads=inter, allow_soft_placement=True
        )
        # Without this setting, TensorFlow keeps several copies of the graph's constants.
        config.experimental.optimize_for_static_graph = True
        config.experimental.disable_output_partition_graphs = True
        graph = tf.Graph()
        self._session = _v1.Session(graph=graph, config=config)
        self._constants = saved.load_into_session(self._session, path, message, [_TAG])

    def signature(self, name: str) -> Signature:
        """Returns the signature with this name; for "", the serving signature. Raises ServingError."""
        found = self.signatures.get(name or DEFAULT_SIGNATURE)
        if found is None:
            raise ServingError('Serving signature name: "%s" not found in signature def' % (name or DEFAULT_SIGNATURE))
        return found

    def run(self, name: str, feeds: list[np.ndarray]) -> dict[str, np.ndarray]:
        """Runs a signature; `feeds` are its inputs, sorted by name. Returns its outputs. Raises ServingError with TensorFlow's text."""
        try:
            results = self._callable(name)(*feeds)
        except MemoryError:
            raise
        except Exception as error:
            if is_out_of_memory(error):
                raise
            status = status_of(error.error_code) if isinstance(error, tf.errors.OpError) else 500
            raise ServingError(_text(error), status=status) from error
        return {port: _array(value) for port, value in zip(self.signature(name).outputs, results)}

    def _callable(self, name: str) -> Any:
        with self._lock:
            found = self._callables.get(name)
            if found is None:
                signature = self.signature(name)
                options = config_pb2.CallableOptions(
                    feed=[port.tensor for port in signature.inputs.values()],
                    fetch=[port.tensor for port in signature.outputs.values()],
                )
                if len(self._callables) >= _CALLABLES_MAX:
                    del self._callables[next(iter(self._callables))]
                # This private method saves 80 us compared with the public one (see `tensorflow/graphs.py`).
                found = self._callables[name] = self._session._make_callable_from_options(options)
            return found

    def metadata(self) -> meta_graph_pb2.MetaGraphDef:
        """Returns a message that contains the version's signatures and no other fields."""
        found = meta_graph_pb2.MetaGraphDef()
        for name, signature in self.signatures.items():
            found.signature_def[name].CopyFrom(signature._definition)
        return found


def _array(value: Any) -> np.ndarray:
    """Converts a result to an array. TensorFlow returns a scalar result without an array."""
    if isinstance(value, bytes):
        array = np.empty((), dtype=np.object_)
        array[()] = value
        return array
    return np.asarray(value)


def _text(error: Exception) -> str:
    return error.message if isinstance(error, tf.errors.OpError) else str(error)
