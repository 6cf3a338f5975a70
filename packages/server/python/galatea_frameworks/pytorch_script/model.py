"""The model class of a PyTorch container's script for the Python backend; its modules were imported before the fork."""

from galatea_frameworks.pytorch_script.handler import PyTorchHandler
from galatea_frameworks.toolkit.program import ScriptProgram, remove_module


class TritonPythonModel(ScriptProgram):
    """A script with the defaults of PyTorch's container."""

    defaults = PyTorchHandler()


remove_module(__name__, __file__)
