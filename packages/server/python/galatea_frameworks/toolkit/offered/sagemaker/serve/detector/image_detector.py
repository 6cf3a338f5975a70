"""Detects the framework of a pickled model."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

# Frameworks by a substring of the class name, each with the module that has the framework's version. The first match is used.
_FRAMEWORKS = (
    ("torch", "pytorch", "torch"),
    ("xgb", "xgboost", "xgboost"),
    ("keras", "tensorflow", "tensorflow"),
    ("tensorflow", "tensorflow", "tensorflow"),
    ("sklearn", "sklearn", "sklearn"),
)


def _get_model_base(model: Any) -> type:
    own = type(model)
    is_root = own.__base__ is object
    return own if is_root or "xgboost" in own.__module__ else own.__base__


def _detect_framework_and_version(model_base: str) -> tuple[str, str]:
    for part, framework, module in _FRAMEWORKS:
        if part in model_base:
            try:
                return framework, importlib.import_module(module).__version__.partition("+")[0]
            except ImportError:
                return framework, ""
    raise ValueError("Cannot tell the framework of %s." % model_base)
