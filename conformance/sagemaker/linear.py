"""Writes linear learner's archives as the example does."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "serial"))
from linear_learner import linear_files

__all__ = ["linear_files"]
