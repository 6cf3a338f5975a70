"""What the Python backend loads for a script in a container of PyTorch; all that it is made of was imported before the fork."""

from galatea_frameworks.pytorch_script.handler import PyTorchHandler
from galatea_frameworks.toolkit.program import ScriptProgram, leave_no_trace


class TritonPythonModel(ScriptProgram):
    """A script with the defaults of PyTorch's container."""

    defaults = PyTorchHandler()


leave_no_trace(__name__, __file__)
