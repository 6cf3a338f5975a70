"""The model class of backend `dali` for the Python backend; its modules were imported before the fork."""

from galatea_frameworks.dali.program import TritonPythonModel

__all__ = ["TritonPythonModel"]
