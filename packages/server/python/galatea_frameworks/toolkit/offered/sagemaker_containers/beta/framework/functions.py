"""Functions that inspect a script's functions, and convert their exceptions."""

from __future__ import annotations

import collections
import functools
import inspect
from typing import TYPE_CHECKING

from .mapping import split_by_criteria

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_Arguments = collections.namedtuple("ArgSpec", "args varargs keywords defaults")


def getargspec(fn: Callable[..., Any]) -> _Arguments:
    """Returns the names of a function's arguments, of its `*` and `**` arguments, and its defaults."""
    found = inspect.getfullargspec(fn)
    return _Arguments(found.args, found.varargs, found.varkw, found.defaults)


def matching_args(fn: Callable[..., Any], dictionary: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the items of the dictionary that are arguments of the function; all items if the function accepts any keyword."""
    arguments = getargspec(fn)
    return dictionary if arguments.keywords else split_by_criteria(dictionary, arguments.args).included


def error_wrapper(fn: Callable[..., Any], error_class: type[Exception]) -> Callable[..., Any]:
    """Returns a function that converts all exceptions of `fn` to `error_class`."""

    @functools.wraps(fn)
    def wrapper(*arguments: Any, **options: Any) -> Any:
        try:
            return fn(*arguments, **options)
        except Exception as error:
            raise error_class(error) from error

    return wrapper
