"""Runs one instance of a model: opens its graph and executes batches."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import tensorflow as tf
import triton_python_backend_utils as pb_utils
from galatea_worker import current_worker, heap, reading_only
from galatea_worker.failures import ModelError, is_out_of_memory

from galatea_frameworks import parameter_values
from galatea_frameworks.batched_model import BatchedModel

from . import completion, configured, devices, graphs, tensors
from .ragged import RaggedBatches
from .settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from triton_python_backend_utils import InferenceRequest, Tensor

_GRAPHDEF = "tensorflow_graphdef"
_SAVED_MODEL = "tensorflow_savedmodel"
_FILES = {_GRAPHDEF: "model.graphdef", _SAVED_MODEL: "model.savedmodel"}
_DEFAULT_BATCH_SIZE = "4"
# Number of runs after which free memory is returned to the system. The first run compiles the graph and leaves several copies of the
# constants in freed memory; later runs do not.
_RUNS_TO_TRIM = 2


class TritonPythonModel(BatchedModel):
    """The Python backend's model class for GraphDefs and SavedModels."""

    @staticmethod
    def auto_complete_config(auto_complete_model_config: Any) -> Any:
        """Completes the configuration of a SavedModel. A GraphDef does not declare enough properties for a completion."""
        config = auto_complete_model_config.as_dict()
        model = config.get("name", "")
        if _platform(config, model) != _SAVED_MODEL:
            return auto_complete_model_config
        path = os.path.join(pb_utils.get_model_dir(), _filename(config, _SAVED_MODEL))
        if not os.path.exists(path):
            return auto_complete_model_config
        settings = Settings(config, model)
        batch_size = parameter_values.integer(
            current_worker.backend_config().get("default-max-batch-size", _DEFAULT_BATCH_SIZE)
        )
        try:
            signature = graphs.read_signature(path, settings, model, pb_utils.Logger)
        except ModelError as error:
            raise ModelError(
                "unable to auto-complete model configuration for '%s', failed to load model: %s" % (model, error)
            ) from None
        completion.complete(config, signature, model, max(batch_size, 0), pb_utils.Logger)
        return auto_complete_model_config

    def initialize(self, args: dict[str, str]) -> None:
        """Opens the graph and checks the configuration against it, with Triton's texts."""
        kind = args["model_instance_kind"]
        if kind != "GPU":
            # Called before TensorFlow starts a thread, because the rules apply only to the calling thread and to threads that are started
            # later. Models on GPUs are not confined, because the files that CUDA opens are not known here.
            reading_only.enter(args["model_repository"])
        model = args["model_name"]
        config = json.loads(args["model_config"])
        platform = _platform(config, model)
        settings = Settings(config, model)
        configured.check_tensors(config, model)
        directory = os.path.join(args["model_repository"], args["model_version"])
        path = os.path.join(directory, _filename(config, platform))
        if not os.path.exists(path):
            raise ModelError("unable to find '%s' for model instance '%s'" % (path, args["model_instance_name"]))
        gpu = devices.instance_gpu(kind, int(args.get("model_instance_device_id", "0")), model)
        session_config = settings.session_config(current_worker.backend_config(), pb_utils.Logger, gpu)
        self.batches = int(config.get("max_batch_size", 0)) > 0
        self.input_names = [one["name"] for one in config["input"]]
        self._ragged = RaggedBatches(config)
        try:
            for library in settings.libraries:
                tf.load_op_library(library)
            if platform == _GRAPHDEF:
                graph = graphs.open_graph(path, config, session_config, model)
            else:
                graph = graphs.open_saved_model(path, config, session_config, (model, settings, pb_utils.Logger))
            init_ops = settings.init_ops_path(args["model_repository"], directory)
            if init_ops is not None:
                graph.initialize(init_ops)
            graph.prepare([*self.input_names, *self._ragged.made_names], [one["name"] for one in config["output"]])
        except (ModelError, MemoryError):
            raise
        except Exception as error:
            if is_out_of_memory(error):
                raise
            raise ModelError("failed to load model '%s': %s" % (model, _text(error))) from error
        self._graph = graph
        self._runs_to_trim = _RUNS_TO_TRIM
        heap.trim()

    def to_value(self, tensor: Tensor | None, name: str) -> Any:
        """Returns an array over the tensor's bytes.

        Ragged inputs are flattened, because their dimensions after the batch dimension may differ.
        """
        value = tensors.to_value(tensor, name)
        return value.reshape(-1) if name in self._ragged.inputs else value

    def joined(self, column: Sequence[Any]) -> Any:
        """Concatenates arrays."""
        return tensors.joined(column)

    def columns(
        self, inputs: Sequence[Any], rows: list[int] | None, requests: Sequence[InferenceRequest]
    ) -> Iterable[Iterable[Tensor]]:
        """Runs the part of the graph that the requested outputs need."""
        wanted = frozenset(name for request in requests for name in request.requested_output_names())
        results = self._graph.run([*inputs, *self._ragged.made(requests)], wanted)
        if self._runs_to_trim > 0:
            self._runs_to_trim -= 1
            if self._runs_to_trim == 0:
                heap.trim()
        for name, value in results.items():
            yield self._ragged.scattered(name, value, requests) or tensors.split(name, value, rows)

    def failure(self, error: Exception) -> str:
        """Returns TensorFlow's error text, as Triton does."""
        if is_out_of_memory(error):
            raise error
        return _text(error)


def _text(error: Exception) -> str:
    return error.message if isinstance(error, tf.errors.OpError) else str(error)


def _platform(config: dict[str, Any], model: str) -> str:
    platform = config.get("platform", "")
    if platform not in _FILES:
        raise ModelError("platform %s not supported for TensorFlow model '%s'" % (platform, model))
    return platform


def _filename(config: dict[str, Any], platform: str) -> str:
    return config.get("default_model_filename") or _FILES[platform]
