"""The runner `tensorflow_serving`: an archive's SavedModels behind TensorFlow Serving's REST API, like SageMaker's container."""
