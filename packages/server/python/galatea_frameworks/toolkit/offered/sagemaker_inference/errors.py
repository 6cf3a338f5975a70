"""See galatea_frameworks.toolkit.errors."""

from galatea_frameworks.toolkit.errors import *  # noqa: F403
