"""Imported before workers are forked."""

from galatea_frameworks.toolkit import warm  # noqa: F401

from . import handler  # noqa: F401
