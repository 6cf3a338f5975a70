"""The model class of backend `pytorch` for the Python backend. The zygote has imported its modules before the fork."""

from galatea_frameworks.pytorch.program import TritonPythonModel

__all__ = ["TritonPythonModel"]
