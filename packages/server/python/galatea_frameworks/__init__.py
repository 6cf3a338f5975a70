"""This product's python-based backends: one folder for each framework. Its `model.py` runs all models of the backend."""
