"""The directories of a SageMaker container, and the values of its environment variables."""

from __future__ import annotations

import logging
import os
import sys

from galatea_frameworks.toolkit import content_types

from . import params
from .mapping import MappingMixin
from .unavailable import refused

SAGEMAKER_BASE_PATH = "/opt/ml"
BASE_PATH_ENV = "SAGEMAKER_BASE_DIR"

base_dir = os.environ.get(BASE_PATH_ENV, SAGEMAKER_BASE_PATH)
# The directory of the running script's model. It may be outside of the base directory.
model_dir = os.environ.get("SM_MODEL_DIR", os.path.join(base_dir, "model"))
code_dir = os.path.join(base_dir, "code")
input_dir = os.path.join(base_dir, "input")
input_config_dir = os.path.join(input_dir, "config")
output_dir = os.path.join(base_dir, "output")
output_data_dir = os.path.join(output_dir, "data")
output_intermediate_dir = os.path.join(output_dir, "intermediate")
HYPERPARAMETERS_FILE = "hyperparameters.json"
RESOURCE_CONFIG_FILE = "resourceconfig.json"
INPUT_DATA_CONFIG_FILE = "inputdataconfig.json"
hyperparameters_file_dir = os.path.join(input_config_dir, HYPERPARAMETERS_FILE)
input_data_config_file_dir = os.path.join(input_config_dir, INPUT_DATA_CONFIG_FILE)
resource_config_file_dir = os.path.join(input_config_dir, RESOURCE_CONFIG_FILE)

TrainingEnv = refused("env.TrainingEnv")
read_hyperparameters = refused("env.read_hyperparameters")
read_input_data_config = refused("env.read_input_data_config")
read_resource_config = refused("env.read_resource_config")


def channel_path(channel: str) -> str:
    """Returns the directory with the data of a training job's channel."""
    return os.path.join(input_dir, "data", channel)


def num_cpus() -> int:
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def num_gpus() -> int:
    """Returns the number of GPUs that NVIDIA's driver reports."""
    try:
        return len(os.listdir("/proc/driver/nvidia/gpus"))
    except OSError:
        return 0


def write_env_vars(env_vars: dict[str, str] | None = None) -> None:
    """Sets environment variables of this process, and PYTHONPATH to its import path."""
    os.environ.update({**(env_vars or {}), "PYTHONPATH": os.pathsep.join(sys.path)})


class ServingEnv(MappingMixin):
    """The environment variables of a serving container, as they are when the object is created."""

    def __init__(self) -> None:
        said = os.environ
        self._model_dir = model_dir
        self._current_host = said.get(params.CURRENT_HOST_ENV)
        self._num_gpus = num_gpus()
        self._num_cpus = num_cpus()
        self._user_entry_point = said.get(params.USER_PROGRAM_ENV)
        self._module_dir = said.get(params.SUBMIT_DIR_ENV, code_dir)
        self._log_level = int(said.get(params.LOG_LEVEL_ENV, logging.INFO))
        self._use_nginx = said.get(params.USE_NGINX_ENV, "true").lower() in ("y", "yes", "t", "true", "on", "1")
        self._model_server_timeout = int(said.get(params.MODEL_SERVER_TIMEOUT_ENV, "60"))
        self._model_server_workers = int(said.get(params.MODEL_SERVER_WORKERS_ENV, num_cpus()))
        self._framework_module = said.get(params.FRAMEWORK_SERVING_MODULE_ENV)
        self._default_accept = said.get(params.DEFAULT_INVOCATIONS_ACCEPT_ENV, content_types.JSON)
        self._http_port = said.get(params.SAGEMAKER_BIND_TO_PORT_ENV, "8080")
        self._safe_port_range = said.get(params.SAGEMAKER_SAFE_PORT_RANGE_ENV)

    @property
    def module_name(self) -> str | None:
        """Returns the script's module name."""
        name = self._user_entry_point
        return name[: -len(".py")] if name is not None and name.endswith(".py") else name


def _property(name: str) -> property:
    return property(lambda self: getattr(self, "_" + name))


for _name in (
    "current_host",
    "default_accept",
    "framework_module",
    "http_port",
    "log_level",
    "model_dir",
    "model_server_timeout",
    "model_server_workers",
    "module_dir",
    "num_cpus",
    "num_gpus",
    "safe_port_range",
    "use_nginx",
    "user_entry_point",
):
    setattr(ServingEnv, _name, _property(_name))
