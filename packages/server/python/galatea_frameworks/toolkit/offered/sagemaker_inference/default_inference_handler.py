"""The toolkit's module `default_inference_handler`; implemented in galatea_frameworks.toolkit.defaults."""

from galatea_frameworks.toolkit.defaults import DefaultInferenceHandler

__all__ = ["DefaultInferenceHandler"]
