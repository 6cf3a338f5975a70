"""Serves the SavedModels of an archive behind TensorFlow Serving's REST API, like SageMaker's TensorFlow Serving container."""
