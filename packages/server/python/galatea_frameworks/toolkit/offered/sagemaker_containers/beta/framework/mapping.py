"""Converts dictionaries to environment variables and command-line arguments, and objects to dictionaries."""

from __future__ import annotations

import collections
import collections.abc
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

SplitResultSpec = collections.namedtuple("SplitResultSpec", "included excluded")


def to_env_vars(mapping: Mapping[str, Any]) -> dict[str, str]:
    """Returns environment variables named `SM_<KEY>`. Values that are not text are converted to JSON."""
    return {"SM_%s" % str(key).upper() if key else "": _variable(value) for key, value in mapping.items()}


def _variable(value: Any) -> str:
    if value is None or isinstance(value, (str, bytes)):
        return _text(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def to_cmd_args(mapping: Mapping[str, Any]) -> list[str]:
    """Returns `--key value` arguments, sorted by key. A key of one letter gets a single dash."""
    arguments = []
    for key in sorted(mapping):
        name, value = _text(key), mapping[key]
        if hasattr(value, "items"):
            value = ",".join("%s=%s" % item for item in sorted(value.items()))
        arguments += [("--" if len(name) > 1 else "-") + name if name else "", _text(value)]
    return arguments


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def split_by_criteria(
    dictionary: Mapping[str, Any], keys: Iterable[str] | None = None, prefix: str | None = None
) -> SplitResultSpec:
    """Returns two dictionaries: the items whose key is in `keys` or begins with `prefix`, and all other items."""
    named = set(keys or ())
    included = {key: value for key, value in dictionary.items() if key in named or (prefix and key.startswith(prefix))}
    return SplitResultSpec(included, {key: value for key, value in dictionary.items() if key not in included})


class MappingMixin(collections.abc.Mapping):
    """Makes an object usable as a dictionary of its properties."""

    def properties(self) -> list[str]:
        """Returns the names of the properties."""
        return [name for name in dir(type(self)) if self._is_property(name)]

    def _is_property(self, name: str) -> bool:
        return isinstance(getattr(type(self), name, None), property)

    def __getitem__(self, name: str) -> Any:
        if not self._is_property(name):
            raise KeyError("Trying to access non property %s" % name)
        return getattr(self, name)

    def __len__(self) -> int:
        return len(self.properties())

    def __iter__(self) -> Iterator[str]:
        return iter(self.properties())

    def __str__(self) -> str:
        return str(dict(self))
