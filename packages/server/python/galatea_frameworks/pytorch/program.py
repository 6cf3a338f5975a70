"""Runs one instance of a model: loads its file and executes batches."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import torch
import triton_python_backend_utils as pb_utils
from galatea_worker import current_worker, heap, reading_only
from galatea_worker.failures import ModelError

from galatea_frameworks.batched_model import BatchedModel

from . import archive, devices, eager, exported, mapped, names, parameters, tensors, torchscript

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from triton_python_backend_utils import InferenceRequest, InferenceResponse, Tensor

LOADERS = {archive.TORCHSCRIPT: torchscript.load, archive.EXPORTED: exported.load}
# The beginning of the error text when main memory is exhausted. PyTorch has no exception type for this case.
_OUT_OF_MEMORY = "DefaultCPUAllocator: "
# Number of runs after which free memory is returned to the system. TorchScript profiles the first run, compiles during the second, and then
# frees the memory of the profile (see warm_up.py).
_RUNS_THAT_COMPILE = 3


class TritonPythonModel(BatchedModel):
    """The Python backend's model class for files that PyTorch has saved."""

    def initialize(self, args: dict[str, str]) -> None:
        """Loads the file and checks the configuration against it, with Triton's texts."""
        self._name = args["model_name"]
        config = json.loads(args["model_config"])
        directory = os.path.join(args["model_repository"], args["model_version"])
        path = os.path.join(directory, _filename(config, directory))
        self._device = devices.instance_device(
            args["model_instance_kind"], int(args.get("model_instance_device_id", "0")), self._name
        )
        if not path.endswith(".py") and _runs_on_cpu(args["model_instance_kind"]):
            # Called before PyTorch starts a thread, because the rules apply only to the calling thread and to threads that are started
            # later.
            reading_only.enter(args["model_repository"])
        settings = parameters.parse(config, self._name, pb_utils.Logger)
        settings.apply()
        self._inference_mode = settings.inference_mode
        self.batches = int(config.get("max_batch_size", 0)) > 0
        self._output_types = _checked_tensors(config, self._name, self.batches)
        with torch.inference_mode(self._inference_mode):
            self._program = self._load(path)
        self.input_names = [one["name"] for one in config["input"]]
        self._program.accept(self.input_names, self._name, pb_utils.Logger)
        self._places = names.output_positions(list(self._output_types), self._name, pb_utils.Logger)
        self._runs_to_trim = _RUNS_THAT_COMPILE
        heap.trim()
        # Keeps the memory of a run for later runs, until the worker is idle.
        heap.keep()
        current_worker.on_idle(heap.trim)

    def _load(self, path: str) -> torchscript.Script | exported.Exported | eager.Eager:
        if not os.path.exists(path):
            raise ModelError("unable to find '%s' for model instance '%s'" % (path, self._name))
        try:
            if path.endswith(".py"):
                return eager.load(path, self._device)
            readable = mapped.readable(path)
            return LOADERS[archive.find_loader(readable, os.path.basename(path))](readable, self._device)
        except MemoryError:
            raise
        except Exception as error:
            raise ModelError("failed to load model '%s': %s" % (self._name, error)) from error

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        """Executes the whole batch with one call of `forward`. A model without batching gets its requests one by one."""
        with torch.inference_mode(self._inference_mode), torch.no_grad():
            return super().execute(requests)

    def to_value(self, tensor: Tensor | None, name: str) -> Any:
        """Returns a tensor on the module's device, or a list of texts."""
        return devices.placed(tensors.to_value(tensor, name), self._device)

    def joined(self, column: Sequence[Any]) -> Any:
        """Concatenates tensors or lists of texts."""
        return tensors.joined(column)

    def columns(
        self, inputs: Sequence[Any], rows: list[int] | None, requests: Sequence[InferenceRequest]
    ) -> Iterable[Iterable[Tensor]]:
        """Calls `forward`."""
        results = self._program.run(inputs)
        if self._runs_to_trim > 0:
            self._runs_to_trim -= 1
            if self._runs_to_trim == 0:
                heap.trim()
        for name, datatype in self._output_types.items():
            yield tensors.split(name, datatype, results.at(name, self._places[name]), rows, len(requests))

    def failure(self, error: Exception) -> str:
        """Returns Triton's error text."""
        if isinstance(error, MemoryError) or _OUT_OF_MEMORY in str(error):
            raise MemoryError(str(error)) from None
        return "PyTorch execute failure: %s" % error


def _runs_on_cpu(kind: str) -> bool:
    """Returns whether the instance runs on the CPU.

    Only then is the process restricted to its own files, because GPU libraries open other files.
    """
    return kind == "CPU" or not torch.cuda.is_available()


def _filename(config: dict[str, Any], directory: str) -> str:
    """Returns the name of the model's file.

    With `runtime: "model.py"`, this is the Python file if there is one. The `.pt` file then contains only weights.
    """
    named = config.get("default_model_filename") or "model.pt"
    if config.get("runtime", "") != "model.py" or named.endswith(".py"):
        return named
    return "model.py" if os.path.exists(os.path.join(directory, "model.py")) else named


def _checked_tensors(config: dict[str, Any], model: str, batches: bool) -> dict[str, str]:
    """Returns the datatypes of the configured outputs by name. Raises ModelError for tensors that programs do not support."""
    for kind in ("input", "output"):
        if not config.get(kind):
            raise ModelError("model configuration must contain at least one %s, none were specified." % kind)
        for one in config[kind]:
            if one["data_type"] not in tensors.DTYPES and one["data_type"] != "TYPE_STRING":
                raise ModelError(
                    "unsupported datatype %s for %s '%s' for model '%s'" % (one["data_type"], kind, one["name"], model)
                )
            shape = one.get("reshape", {}).get("shape", one.get("dims", []))
            if one["data_type"] == "TYPE_STRING" and len(shape) + batches > 1:
                raise ModelError(
                    "Triton only supports 1 dimensional List of String as %s for '%s' for model '%s'"
                    % (kind, one["name"], model)
                )
    return {one["name"]: one["data_type"] for one in config["output"]}
