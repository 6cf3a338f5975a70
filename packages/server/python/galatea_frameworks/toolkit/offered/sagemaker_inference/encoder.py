"""The toolkit's module `encoder`; implemented in galatea_frameworks.toolkit.encoder."""

from galatea_frameworks.toolkit.encoder import *  # noqa: F403
