"""The model class of backend `tensorflow` for the Python backend; its modules were imported before the fork."""

from galatea_frameworks.tensorflow.program import TritonPythonModel

__all__ = ["TritonPythonModel"]
