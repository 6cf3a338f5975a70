"""The model class of an archive in a TensorFlow Serving container for the Python backend; its modules were imported before the fork."""

from galatea_frameworks.tensorflow_serving.program import ServingProgram
from galatea_frameworks.toolkit.program import leave_no_trace


class TritonPythonModel(ServingProgram):
    """An archive of SavedModels."""


leave_no_trace(__name__, __file__)
