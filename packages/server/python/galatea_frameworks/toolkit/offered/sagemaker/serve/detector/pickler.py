"""Loads XGBoost models that are stored in a file next to the pickle."""

from __future__ import annotations

import importlib
from typing import Any


def load_xgboost_from_json(model_save_path: str, class_name: str) -> Any:
    """Returns an object of the named class with the stored model."""
    module, _, name = class_name.rpartition(".")
    try:
        model = getattr(importlib.import_module(module), name)()
        model.load_model(model_save_path)
    except Exception as error:
        raise ValueError(
            "Cannot load %s as %s: %s. Load it in an InferenceSpec." % (model_save_path, class_name, error)
        ) from error
    return model
