"""What the Python backend loads for a model of backend `tensorflow`; all that it is made of was imported before the fork."""

from galatea_frameworks.tensorflow.program import TritonPythonModel

__all__ = ["TritonPythonModel"]
