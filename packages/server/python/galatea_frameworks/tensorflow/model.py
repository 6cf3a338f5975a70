"""The model class of backend `tensorflow` for the Python backend. The zygote has imported its modules before the fork."""

from galatea_frameworks.tensorflow.program import TritonPythonModel

__all__ = ["TritonPythonModel"]
