"""Python-based backends that come with the product: one folder for each framework, with a `model.py` that runs all models of its backend."""
