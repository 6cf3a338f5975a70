"""The model class of an XGBoost container's script for the Python backend; its modules were imported before the fork."""

import os

from galatea_frameworks.toolkit.content_types import JSON
from galatea_frameworks.toolkit.program import ScriptProgram, remove_module
from galatea_frameworks.xgboost_script.handler import XGBoostHandler

# One thread, as in the container, which has a process for each processor.
os.environ.setdefault("OMP_NUM_THREADS", "1")


class TritonPythonModel(ScriptProgram):
    """A script with the defaults of XGBoost's container."""

    defaults = XGBoostHandler()
    default_content_type = JSON


remove_module(__name__, __file__)
