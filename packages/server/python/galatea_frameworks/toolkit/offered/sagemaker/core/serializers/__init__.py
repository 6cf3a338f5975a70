"""The SDK's serializers, under the SDK's names."""

from .base import *  # noqa: F403
