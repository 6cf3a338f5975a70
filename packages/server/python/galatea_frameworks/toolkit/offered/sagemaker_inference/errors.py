"""The toolkit's module `errors`; implemented in galatea_frameworks.toolkit.errors."""

from galatea_frameworks.toolkit.errors import *  # noqa: F403
