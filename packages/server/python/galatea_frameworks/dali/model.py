"""The model class of backend `dali` for the Python backend. The zygote has imported its modules before the fork."""

from galatea_frameworks.dali.program import TritonPythonModel

__all__ = ["TritonPythonModel"]
