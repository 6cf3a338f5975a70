"""The model class of an archive in a TensorFlow Serving container for the Python backend; its modules were imported before the fork."""

from galatea_frameworks.tensorflow_serving.program import ServingProgram
from galatea_frameworks.toolkit.program import remove_module


class TritonPythonModel(ServingProgram):
    """An archive of SavedModels."""


remove_module(__name__, __file__)
