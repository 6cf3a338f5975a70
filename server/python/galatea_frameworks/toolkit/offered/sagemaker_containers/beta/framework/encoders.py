"""See galatea_frameworks.toolkit.decoder and encoder."""

from galatea_frameworks.toolkit.decoder import decode
from galatea_frameworks.toolkit.encoder import encode

__all__ = ["decode", "encode"]
