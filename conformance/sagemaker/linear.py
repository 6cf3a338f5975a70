"""What linear learner leaves in an archive, written as the example writes it."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "serial"))
from linear_learner import linear_files

__all__ = ["linear_files"]
