"""The product's python-based backends: one folder for each framework, with a `model.py` that runs all models of its backend."""
