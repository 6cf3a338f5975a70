"""The backend `tensorflow`: runs GraphDefs and SavedModels with TensorFlow."""
