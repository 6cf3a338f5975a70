"""The SDK's serializers under their names."""

from .base import *  # noqa: F403
