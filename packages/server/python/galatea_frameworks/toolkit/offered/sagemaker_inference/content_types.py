"""See galatea_frameworks.toolkit.content_types."""

from galatea_frameworks.toolkit.content_types import *  # noqa: F403
