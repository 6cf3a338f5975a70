"""The SDK's deserializers under their names."""

from .base import *  # noqa: F403
