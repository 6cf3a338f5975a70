"""Imported by the zygote before workers are forked: modules that every PyTorch script needs."""

from galatea_frameworks.toolkit import warm_up  # noqa: F401

from . import handler  # noqa: F401
