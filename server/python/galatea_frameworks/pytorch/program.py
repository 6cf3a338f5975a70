"""One instance of a model: loads its file, runs batches through it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import torch
import triton_python_backend_utils as pb_utils
from galatea_worker.failures import Refused

from . import allocator, archive, eager, exported, names, parameters, tensors, torchscript

if TYPE_CHECKING:
    from typing import Any

    from triton_python_backend_utils import InferenceRequest, InferenceResponse

_LOADERS = {archive.TORCHSCRIPT: torchscript.load, archive.EXPORTED: exported.load}
# What the allocator of the machine's memory says, of no exception type of its own.
_OUT_OF_MEMORY = "DefaultCPUAllocator: "
# TorchScript's executor watches one run, and compiles during the next.
_RUNS_THAT_COMPILE = 2


class TritonPythonModel:
    """The contract of the Python backend, for any file that PyTorch saved."""

    def initialize(self, args: dict[str, str]) -> None:
        """Loads the file and checks the configuration against it, in Triton's words."""
        self._name = args["model_name"]
        config = json.loads(args["model_config"])
        settings = parameters.parse(config, self._name, pb_utils.Logger)
        settings.apply()
        self._inference_mode = settings.inference_mode
        self._batches = int(config.get("max_batch_size", 0)) > 0
        self._output_types = _checked_tensors(config, self._name, self._batches)
        directory = os.path.join(args["model_repository"], args["model_version"])
        path = os.path.join(directory, _filename(config, directory))
        with torch.inference_mode(self._inference_mode):
            self._program = self._load(path, args["model_instance_kind"])
        self._input_names = [one["name"] for one in config["input"]]
        self._program.accept(self._input_names, self._name, pb_utils.Logger)
        self._places = names.output_places(list(self._output_types), self._name, pb_utils.Logger)
        self._runs_to_trim = _RUNS_THAT_COMPILE
        allocator.trim()

    def _load(self, path: str, kind: str) -> torchscript.Script | exported.Exported | eager.Eager:
        if not os.path.exists(path):
            raise Refused("unable to find '%s' for model instance '%s'" % (path, self._name))
        try:
            device = "cpu" if kind == "CPU" else None
            if path.endswith(".py"):
                return eager.load(path, device)
            return _LOADERS[archive.checked_kind(path)](path, device)
        except MemoryError:
            raise
        except Exception as error:
            raise Refused("failed to load model '%s': %s" % (self._name, error)) from error

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        """One forward for the whole batch; a model without batching gets its requests one by one."""
        if self._batches:
            return self._run(requests)
        return [response for request in requests for response in self._run([request])]

    def _run(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        responses = [None] * len(requests)
        with torch.inference_mode(self._inference_mode), torch.no_grad():
            taken = self._taken(requests, responses)
            if taken:
                places = [place for place, _, _ in taken]
                rows = [count for _, _, count in taken] if self._batches else None
                try:
                    answers = self._answers([inputs for _, inputs, _ in taken], rows)
                except tensors.Unfit as error:
                    answers = [_failed(str(error), error.code)] * len(places)
                except Exception as error:  # noqa: BLE001 - whatever a program raises is the answer to its requests
                    if isinstance(error, MemoryError) or _OUT_OF_MEMORY in str(error):
                        raise MemoryError(str(error)) from None
                    answers = [_failed("PyTorch execute failure: %s" % error)] * len(places)
                for place, answer in zip(places, answers):
                    responses[place] = answer
        return responses

    def _taken(
        self, requests: list[InferenceRequest], responses: list[InferenceResponse | None]
    ) -> list[tuple[int, list[Any], int]]:
        """Of each request its place, its inputs in the order of the configuration, and its rows. One that does not fit is answered."""
        taken = []
        for place, request in enumerate(requests):
            given = {one.name(): one for one in request.inputs()}
            try:
                inputs = [tensors.value_of(given.get(name), name) for name in self._input_names]
            except tensors.Unfit as error:
                responses[place] = _failed(str(error), error.code)
                continue
            taken.append((place, inputs, given[self._input_names[0]].shape()[0] if self._batches else 1))
        return taken

    def _answers(self, batch: list[list[Any]], rows: list[int] | None) -> list[InferenceResponse]:
        inputs = batch[0] if len(batch) == 1 else [tensors.joined(column) for column in zip(*batch)]
        results = self._program.run(inputs)
        if self._runs_to_trim > 0:
            self._runs_to_trim -= 1
            if self._runs_to_trim == 0:
                allocator.trim()
        columns = []
        for name, datatype in self._output_types.items():
            value = results.at(name, self._places[name])
            columns.append(tensors.split(name, datatype, value, rows, len(batch)))
        return [pb_utils.InferenceResponse(list(row)) for row in zip(*columns)]


def _filename(config: dict[str, Any], directory: str) -> str:
    """With `runtime: "model.py"` the model is a class in Python where there is one, and its `.pt` has nothing but weights."""
    named = config.get("default_model_filename") or "model.pt"
    if config.get("runtime", "") != "model.py" or named.endswith(".py"):
        return named
    return "model.py" if os.path.exists(os.path.join(directory, "model.py")) else named


def _failed(message: str, code: int = pb_utils.TritonError.INTERNAL) -> InferenceResponse:
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, code))


def _checked_tensors(config: dict[str, Any], model: str, batches: bool) -> dict[str, str]:
    """The datatypes of the configuration's outputs by name. Raises Refused for tensors that no program takes or gives."""
    for kind in ("input", "output"):
        if not config.get(kind):
            raise Refused("model configuration must contain at least one %s, none were specified." % kind)
        for one in config[kind]:
            if one["data_type"] not in tensors.DTYPES and one["data_type"] != "TYPE_STRING":
                raise Refused(
                    "unsupported datatype %s for %s '%s' for model '%s'" % (one["data_type"], kind, one["name"], model)
                )
            shape = one.get("reshape", {}).get("shape", one.get("dims", []))
            if one["data_type"] == "TYPE_STRING" and len(shape) + batches > 1:
                raise Refused(
                    "Triton only supports 1 dimensional List of String as %s for '%s' for model '%s'"
                    % (kind, one["name"], model)
                )
    return {one["name"]: one["data_type"] for one in config["output"]}
