"""The model class of a scikit-learn container's script for the Python backend; its modules were imported before the fork."""

from galatea_frameworks.sklearn import legacy_joblib
from galatea_frameworks.sklearn.handler import SklearnHandler
from galatea_frameworks.toolkit.content_types import JSON
from galatea_frameworks.toolkit.program import ScriptProgram, remove_module


class TritonPythonModel(ScriptProgram):
    """A script with the defaults of scikit-learn's container."""

    defaults = SklearnHandler()
    default_content_type = JSON


legacy_joblib.install()
remove_module(__name__, __file__)
