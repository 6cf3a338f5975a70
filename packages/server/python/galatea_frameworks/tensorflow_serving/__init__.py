"""The runner `tensorflow_serving`: an archive's SavedModels behind the REST contract of TensorFlow Serving, as SageMaker's container has it."""
