"""What the Python backend loads for a model of backend `pytorch`; all that it is made of was imported before the fork."""

from galatea_frameworks.pytorch.program import TritonPythonModel

__all__ = ["TritonPythonModel"]
