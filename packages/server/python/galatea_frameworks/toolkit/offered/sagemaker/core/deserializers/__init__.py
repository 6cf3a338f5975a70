"""Deserializers under the names that the SDK offers them by."""

from .base import *  # noqa: F403
