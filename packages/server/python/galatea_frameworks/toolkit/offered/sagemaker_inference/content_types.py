"""The toolkit's module `content_types`; implemented in galatea_frameworks.toolkit.content_types."""

from galatea_frameworks.toolkit.content_types import *  # noqa: F403
