"""The model class for scripts of a PyTorch container. The zygote has imported its modules before the fork."""

from galatea_frameworks.pytorch_script.handler import PyTorchHandler
from galatea_frameworks.toolkit.program import ScriptProgram, remove_module


class TritonPythonModel(ScriptProgram):
    """Runs a user's script with the default functions of SageMaker's PyTorch container."""

    defaults = PyTorchHandler()


remove_module(__name__, __file__)
