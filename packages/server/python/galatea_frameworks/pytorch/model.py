"""The model class of backend `pytorch` for the Python backend; its modules were imported before the fork."""

from galatea_frameworks.pytorch.program import TritonPythonModel

__all__ = ["TritonPythonModel"]
