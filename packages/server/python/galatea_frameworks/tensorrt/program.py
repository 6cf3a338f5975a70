"""Runs one instance of a model: loads its plan on its GPU and executes batches."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import numpy as np
import triton_python_backend_utils as pb_utils
from galatea_worker import current_worker
from galatea_worker.failures import ModelError
from galatea_worker.objects import tensor_from_bits, to_bits

from galatea_frameworks import parameter_values
from galatea_frameworks.batched_model import BatchedModel, InvalidRequest, split_rows

from . import completion, configured, cuda
from .contexts import Contexts
from .plan import Plan, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from triton_python_backend_utils import InferenceRequest, InferenceResponse, Tensor


class TritonPythonModel(BatchedModel):
    """The Python backend's model class for TensorRT plans."""

    @staticmethod
    def auto_complete_config(auto_complete_model_config: Any) -> Any:
        """Completes the configuration from the engine, on the GPU of the first instance. Models without GPU instances are not completed."""
        config = auto_complete_model_config.as_dict()
        model = config.get("name", "")
        groups = config.get("instance_group", ())
        if not groups or groups[0].get("kind") != "KIND_GPU" or not groups[0].get("gpus"):
            return auto_complete_model_config
        device = _open_device(int(groups[0]["gpus"][0]), model)
        path = os.path.join(pb_utils.get_model_dir(), _filename(config, device))
        if not os.path.exists(path):
            return auto_complete_model_config
        try:
            plan = _open_plan(path, model)
        except Unreadable:
            raise ModelError("unable to load plan file to auto complete config: %s" % path) from None
        completion.complete(config, plan, model, pb_utils.Logger)
        return auto_complete_model_config

    def initialize(self, args: dict[str, str]) -> None:
        """Loads the plan, checks the configuration against it, and allocates memory for the largest batch."""
        model, instance = args["model_name"], args["model_instance_name"]
        config = json.loads(args["model_config"])
        if args["model_instance_kind"] != "GPU":
            raise ModelError("unable to load model '%s', TensorRT backend supports only GPU device" % model)
        device = _open_device(int(args["model_instance_device_id"]), instance)
        path = os.path.join(args["model_repository"], args["model_version"], _filename(config, device))
        if not os.path.exists(path):
            raise ModelError("unable to find '%s' for model instance '%s'" % (path, instance))
        plan = _open_plan(path, model)
        configured.check(config, plan, model, instance)
        self.batches = int(config.get("max_batch_size", 0)) > 0
        self.input_names = [one["name"] for one in config["input"]]
        self._plan = plan
        self._device = device
        try:
            self._contexts = Contexts(plan, device, config, (model, instance))
        except cuda.OutOfDeviceMemory as error:
            raise cuda.OutOfDeviceMemory("unable to allocate memory for %s: %s" % (instance, error)) from None
        except cuda.CudaError as error:
            raise ModelError("unable to load model '%s': %s" % (model, error)) from None

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        """Runs requests together if their shape tensors have equal values, because a run has one value for each shape tensor."""
        if not any(port.is_shape for port in self._plan.inputs):
            return super().execute(requests)
        groups: dict[Any, list[int]] = {}
        for place, request in enumerate(requests):
            groups.setdefault(self._said_by(request), []).append(place)
        responses: list[Any] = [None] * len(requests)
        for places in groups.values():
            for place, response in zip(places, super().execute([requests[place] for place in places])):
                responses[place] = response
        return responses

    def _said_by(self, request: InferenceRequest) -> tuple[bytes, ...]:
        shapes = {port.name for port in self._plan.inputs if port.is_shape}
        tensors = [one for one in request.inputs() if one.name() in shapes]
        return tuple((one.as_numpy()[:1] if self.batches else one.as_numpy()).tobytes() for one in tensors)

    def to_value(self, tensor: Tensor | None, name: str) -> np.ndarray:
        """Returns an array over the request's bytes, from which they are copied to the GPU."""
        if tensor is None:
            raise InvalidRequest("input '%s' is missing: an engine is given all of its inputs" % name)
        array = to_bits(tensor) if self._plan.ports[name].datatype == "TYPE_BF16" else tensor.as_numpy()
        return np.ascontiguousarray(array)

    def joined(self, column: Sequence[np.ndarray]) -> np.ndarray:
        """Concatenates one input of several requests."""
        return np.concatenate(column, 0)

    def columns(
        self, inputs: Sequence[Any], rows: list[int] | None, requests: Sequence[InferenceRequest]
    ) -> Iterable[Iterable[Tensor]]:
        """Runs the whole batch at once."""
        total = sum(rows) if rows is not None else 1
        arrays = {name: self._whole(name, array, total) for name, array in zip(self.input_names, inputs)}
        wanted = frozenset(name for request in requests for name in request.requested_output_names())
        for name, value in self._contexts.run(arrays, total, wanted).items():
            port = self._plan.ports[name]
            if port.is_shape and rows is not None:
                # The first value is the number of rows, which the caller sets. The other values are the same for each row.
                value = np.tile(value[1:], (total, 1))
            yield [_tensor(name, one, port.datatype) for one in split_rows(name, value, rows)]

    def _whole(self, name: str, array: np.ndarray, total: int) -> np.ndarray:
        if self._plan.ports[name].is_shape:
            return np.concatenate(([total], array[0].ravel())) if self.batches else array.ravel()
        return array

    def failure(self, error: Exception) -> str:
        """Returns CUDA's error text."""
        if isinstance(error, MemoryError):
            raise error
        return str(error)

    def finalize(self) -> None:
        """Frees the GPU memory."""
        self._contexts.close()
        self._device.close()


def _tensor(name: str, value: np.ndarray, datatype: str) -> Tensor:
    return tensor_from_bits(name, value) if datatype == "TYPE_BF16" else pb_utils.Tensor(name, value)


def _open_device(number: int, name: str) -> cuda.Device:
    library = cuda.load_library()
    try:
        return cuda.Device(library, number)
    except cuda.CudaError as error:
        raise ModelError("unable to set device for %s: %s" % (name, error)) from None


def _open_plan(path: str, model: str) -> Plan:
    allowed = current_worker.backend_config().get("version-compatible", "false")
    return Plan(path, model, allows_host_code=parameter_values.boolean(allowed))


def _filename(config: dict[str, Any], device: cuda.Device) -> str:
    named = config.get("cc_model_filenames", {}).get(device.capability())
    return named or config.get("default_model_filename") or "model.plan"
