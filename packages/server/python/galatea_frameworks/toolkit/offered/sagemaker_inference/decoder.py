"""The toolkit's module `decoder`; implemented in galatea_frameworks.toolkit.decoder."""

from galatea_frameworks.toolkit.decoder import *  # noqa: F403
