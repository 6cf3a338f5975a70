"""The model class for scripts of a scikit-learn container. The zygote has imported its modules before the fork."""

from galatea_frameworks.sklearn import legacy_joblib
from galatea_frameworks.sklearn.handler import SklearnHandler
from galatea_frameworks.toolkit.content_types import JSON
from galatea_frameworks.toolkit.program import ScriptProgram, remove_module


class TritonPythonModel(ScriptProgram):
    """Runs a user's script with the default functions of SageMaker's scikit-learn container."""

    defaults = SklearnHandler()
    default_content_type = JSON


legacy_joblib.install()
remove_module(__name__, __file__)
