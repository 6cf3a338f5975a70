"""What the Python backend loads for an archive in a container of TensorFlow Serving; all that it is made of was imported before the fork."""

from galatea_frameworks.tensorflow_serving.program import ServingProgram
from galatea_frameworks.toolkit.program import leave_no_trace


class TritonPythonModel(ServingProgram):
    """An archive of SavedModels."""


leave_no_trace(__name__, __file__)
