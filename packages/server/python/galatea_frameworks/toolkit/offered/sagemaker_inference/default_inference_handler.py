"""See galatea_frameworks.toolkit.defaults."""

from galatea_frameworks.toolkit.defaults import DefaultInferenceHandler

__all__ = ["DefaultInferenceHandler"]
