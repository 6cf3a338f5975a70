"""The model class for archives of a TensorFlow Serving container. The zygote has imported its modules before the fork."""

from galatea_frameworks.tensorflow_serving.program import ServingProgram
from galatea_frameworks.toolkit.program import remove_module


class TritonPythonModel(ServingProgram):
    """Serves an archive of SavedModels."""


remove_module(__name__, __file__)
