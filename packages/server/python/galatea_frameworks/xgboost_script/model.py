"""The model class for scripts of an XGBoost container. The zygote has imported its modules before the fork."""

import os

from galatea_frameworks.toolkit.content_types import JSON
from galatea_frameworks.toolkit.program import ScriptProgram, remove_module
from galatea_frameworks.xgboost_script.handler import XGBoostHandler

# Each worker uses one thread, as in SageMaker's container, which starts one process for each processor.
os.environ.setdefault("OMP_NUM_THREADS", "1")


class TritonPythonModel(ScriptProgram):
    """Runs a user's script with the default functions of SageMaker's XGBoost container."""

    defaults = XGBoostHandler()
    default_content_type = JSON


remove_module(__name__, __file__)
