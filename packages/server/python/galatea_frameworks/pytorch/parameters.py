"""The parameters of a model's configuration that the backend supports."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from galatea_worker.failures import ModelError

from galatea_frameworks import parameter_values

if TYPE_CHECKING:
    from typing import Any

_SWITCHES = {
    "ENABLE_TENSOR_FUSER": torch._C._jit_set_texpr_fuser_enabled,
    "ENABLE_JIT_PROFILING": torch._C._jit_set_profiling_mode,
    "ENABLE_JIT_EXECUTOR": torch._C._jit_set_profiling_executor,
}
# The last two parameters are for models with `runtime: "model.py"`.
_THREADS = {
    "INTRA_OP_THREAD_COUNT": torch.set_num_threads,
    "INTER_OP_THREAD_COUNT": torch.set_num_interop_threads,
    "NUM_THREADS": torch.set_num_threads,
    "NUM_INTEROP_THREADS": torch.set_num_interop_threads,
}
# These parameters have no effect here: each instance is a separate process, and GPU memory and the GPU fuser are not used.
_WITHOUT_EFFECT = ("ENABLE_CACHE_CLEANING", "ENABLE_NVFUSER", "ENABLE_WEIGHT_SHARING")
_THREADS_MAX = 1024


class Settings:
    """The settings of a model's parameters."""

    def __init__(self) -> None:
        self.inference_mode = True
        self._steps = []

    def then(self, function: Any, value: Any) -> None:
        """Adds the call `function(value)` to the calls that `apply` makes."""
        self._steps.append((function, value))

    def apply(self) -> None:
        """Applies the settings to this process, before the model is loaded."""
        for function, value in self._steps:
            function(value)


def parse(config: dict[str, Any], model: str, log: Any) -> Settings:
    """Parses the parameters. Raises ModelError with Triton's text for an invalid value."""
    given = {key: value["string_value"] for key, value in config.get("parameters", {}).items()}
    settings = Settings()

    def switch(key: str, default: bool) -> bool:
        value = parameter_values.boolean(given[key]) if key in given else default
        if key in given:
            log.log_info("%s is %s for model instance '%s'" % (key, "enabled" if value else "disabled", model))
        return value

    settings.then(torch._C._set_graph_executor_optimize, not switch("DISABLE_OPTIMIZED_EXECUTION", False))
    settings.inference_mode = switch("INFERENCE_MODE", True)
    if switch("DISABLE_CUDNN", False):
        settings.then(lambda enabled: setattr(torch.backends.cudnn, "enabled", enabled), False)
    for key, function in _SWITCHES.items():
        if key in given:
            settings.then(function, switch(key, True))
    for key in _WITHOUT_EFFECT:
        if key in given and switch(key, False):
            log.log_warn("%s has no effect for model instance '%s': it runs on the CPU, in a process" % (key, model))
    if "TORCH_COMPILE_OPTIONAL_PARAMETERS" in given:
        log.log_warn(
            "TORCH_COMPILE_OPTIONAL_PARAMETERS has no effect for model instance '%s': it is not compiled" % model
        )
    if "INTRA_OP_THREAD_COUNT" not in given and "NUM_THREADS" not in given:
        # Without this call, MKL would keep the zygote's limit of one thread, which halves the speed of ResNet-50 on two processors.
        settings.then(torch.set_num_threads, _default_thread_count())
    for key, function in _THREADS.items():
        if key in given:
            settings.then(function, _thread_count(key, given[key]))
    return settings


def _default_thread_count() -> int:
    """Returns PyTorch's default thread count, determined in a separate process."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) > 0 else len(os.sched_getaffinity(0))


def _thread_count(key: str, text: str) -> int:
    count = parameter_values.integer(text)
    if not 1 <= count <= _THREADS_MAX:
        raise ModelError("parameter '%s' must be from 1 to %d, found '%s'" % (key, _THREADS_MAX, text))
    return count
