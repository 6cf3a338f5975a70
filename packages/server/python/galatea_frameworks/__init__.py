"""This product's python-based backends: one directory for each framework. The directory's `model.py` runs all models of the backend."""
