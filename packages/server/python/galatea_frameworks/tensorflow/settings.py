"""The TensorFlow settings in a configuration, except those of tensors."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import tensorflow as tf
from galatea_worker.failures import ModelError
from tensorflow.core.protobuf import rewriter_config_pb2

from galatea_frameworks import parameter_values

if TYPE_CHECKING:
    from typing import Any

_JIT = tf.compat.v1.OptimizerOptions
_ON = rewriter_config_pb2.RewriterConfig.ON
_THREADS_MAX = 1024


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ModelError("--backend-config tensorflow,gpu-memory-fraction must be from 0 to 1, found '%s'" % text[:64])
    return value


class Settings:
    """The parsed parameters of a configuration. Raises ModelError with Triton's text for an invalid value."""

    def __init__(self, config: dict[str, Any], model: str) -> None:
        self._given = {key: value["string_value"] for key, value in config.get("parameters", {}).items()}
        self._model = model
        self._optimization = config.get("optimization", {})
        self.intra_threads = self._count("TF_NUM_INTRA_THREADS")
        self.inter_threads = self._count("TF_NUM_INTER_THREADS")
        self.per_session_threads = parameter_values.boolean(self._given.get("TF_USE_PER_SESSION_THREADS", "false"))
        self.tag = self._given.get("TF_GRAPH_TAG", "")
        self.signature = self._given.get("TF_SIGNATURE_DEF", "")
        self.init_ops_file = self._given.get("TF_INIT_OPS_FILE", "")
        self.libraries = list(config.get("model_operations", {}).get("op_library_filename", ()))
        # Each instance is a process with its own session, so no sessions are shared.
        shares = parameter_values.integer(self._given.get("MAX_SESSION_SHARE_COUNT", "1"))
        if shares <= 0:
            raise ModelError(
                "parameter 'MAX_SESSION_SHARE_COUNT' must be positive number for TensorFlow model '%s'" % model
            )

    def _count(self, key: str) -> int:
        count = parameter_values.integer(self._given.get(key, "0"))
        if count < 0 and key == "TF_NUM_INTRA_THREADS":
            raise ModelError(
                "parameter '%s' must be non-negative number for TensorFlow model '%s'" % (key, self._model)
            )
        if count > _THREADS_MAX:
            raise ModelError("parameter '%s' must be at most %d, found '%d'" % (key, _THREADS_MAX, count))
        return count

    def session_config(self, backend_config: dict[str, str], log: Any, gpu: int | None) -> tf.compat.v1.ConfigProto:
        """Returns the session configuration for this GPU; for the CPU when `gpu` is None."""
        found = tf.compat.v1.ConfigProto(
            intra_op_parallelism_threads=self.intra_threads,
            inter_op_parallelism_threads=self.inter_threads,
            use_per_session_threads=self.per_session_threads,
            allow_soft_placement=parameter_values.boolean(backend_config.get("allow-soft-placement", "true")),
        )
        # Without this setting, TensorFlow keeps the graph for later extensions, with several copies of its constants.
        found.experimental.optimize_for_static_graph = True
        found.experimental.disable_output_partition_graphs = True
        level = int(self._optimization.get("graph", {}).get("level", 0))
        if level != 0:
            jit = _JIT.OFF if level < 0 else _JIT.ON_1 if level == 1 else _JIT.ON_2
            found.graph_options.optimizer_options.global_jit_level = jit
        self._accelerate(found, log, gpu)
        if gpu is None:
            # Without this setting, a TensorFlow with CUDA would allocate memory on every GPU.
            found.device_count["GPU"] = 0
            return found
        # The session sees only this GPU, as /GPU:0. As in Triton, it allocates GPU memory on demand, or the configured fraction at once.
        found.gpu_options.visible_device_list = str(gpu)
        fraction = _fraction(backend_config.get("gpu-memory-fraction", "0"))
        found.gpu_options.allow_growth = fraction == 0
        found.gpu_options.per_process_gpu_memory_fraction = fraction
        return found

    def _accelerate(self, found: tf.compat.v1.ConfigProto, log: Any, gpu: int | None) -> None:
        accelerators = self._optimization.get("execution_accelerators", {})
        if accelerators.get("cpu_execution_accelerator"):
            raise ModelError("CPU Execution Accelerator is not supported in TensorFlow backend")
        names = [one.get("name", "") for one in accelerators.get("gpu_execution_accelerator", ())]
        if names and gpu is None:
            log.log_warn("GPU Execution Accelerator will be ignored for model instance on CPU")
            return
        for name in names:
            if name == "auto_mixed_precision":
                found.graph_options.rewrite_options.auto_mixed_precision = _ON
            elif name == "gpu_io":
                log.log_warn(
                    "GPU Execution Accelerator 'gpu_io' has no effect: inputs and outputs are in the machine's memory"
                )
            elif name == "tensorrt":
                raise ModelError(
                    "GPU Execution Accelerator 'tensorrt' is requested for model '%s', and TensorFlow %s has no TensorRT"
                    % (self._model, tf.__version__)
                )
            else:
                raise ModelError("unknown Execution Accelerator '%s' is requested" % name)

    def init_ops_path(self, model_directory: str, version_directory: str) -> str | None:
        """Returns the path of the file that TF_INIT_OPS_FILE names, in the version's or the model's directory; None if no file is named."""
        if self.init_ops_file == "":
            return None
        own = os.path.join(version_directory, self.init_ops_file)
        return own if os.path.exists(own) else os.path.join(model_directory, self.init_ops_file)
