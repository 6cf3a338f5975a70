"""The backend `tensorflow`: GraphDefs and SavedModels, run by TensorFlow."""
