"""The modules that scripts of scikit-learn import."""

from galatea_frameworks.toolkit import content_types, errors

from . import encoders, env, worker

__all__ = ["content_types", "encoders", "env", "errors", "worker"]
