"""The model class of a PyTorch container's script for the Python backend; its modules were imported before the fork."""

from galatea_frameworks.pytorch_script.handler import PyTorchHandler
from galatea_frameworks.toolkit.program import ScriptProgram, leave_no_trace


class TritonPythonModel(ScriptProgram):
    """A script with the defaults of PyTorch's container."""

    defaults = PyTorchHandler()


leave_no_trace(__name__, __file__)
