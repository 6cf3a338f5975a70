"""What the Python backend loads for a model of backend `dali`; all that it is made of was imported before the fork."""

from galatea_frameworks.dali.program import TritonPythonModel

__all__ = ["TritonPythonModel"]
