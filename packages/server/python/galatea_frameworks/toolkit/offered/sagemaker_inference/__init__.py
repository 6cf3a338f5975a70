"""Replaces the package `sagemaker-inference` if it is not installed. Contains the names that scripts import."""

import sys
import types

from galatea_frameworks.toolkit.accept import parse_accept

utils = types.ModuleType(__name__ + ".utils", "See galatea_frameworks.toolkit.accept.")
utils.parse_accept = parse_accept
sys.modules[utils.__name__] = utils
