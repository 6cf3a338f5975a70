"""The SDK's deserializers, under the SDK's names."""

from .base import *  # noqa: F403
