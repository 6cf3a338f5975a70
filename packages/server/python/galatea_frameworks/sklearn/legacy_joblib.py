"""Provides `sklearn.externals.joblib`, which scikit-learn contained until version 0.22. Old scripts and pickles import it."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_LEGACY = "sklearn.externals.joblib"
_PRESENT = "joblib"


class _LegacyJoblib(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds joblib under its former name, unless the installed scikit-learn still contains a module of this name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns a spec for joblib's former name and the submodules of it; None for all other names."""
        if fullname == _LEGACY:
            is_own = importlib.machinery.PathFinder.find_spec(fullname, path) is not None
        elif fullname.startswith(_LEGACY + "."):
            is_own = sys.modules.get(_LEGACY) is not sys.modules.get(_PRESENT)
        else:
            return None
        return None if is_own else importlib.machinery.ModuleSpec(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        """Replaces the module of the former name by joblib's own module."""
        sys.modules[module.__name__] = importlib.import_module(_PRESENT + module.__name__[len(_LEGACY) :])


def install() -> None:
    """Installs this import finder in the process."""
    if not any(isinstance(finder, _LegacyJoblib) for finder in sys.meta_path):
        # Inserted before the finder for files, which would otherwise load joblib's modules a second time under the former name.
        sys.meta_path.insert(0, _LegacyJoblib())
