"""The toolkit's module `transformer`; implemented in galatea_frameworks.toolkit.transformer."""

from galatea_frameworks.toolkit.transformer import Transformer

__all__ = ["Transformer"]
