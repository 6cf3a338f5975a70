"""Errors for wrong arguments, with the texts of Triton's compiled module, and enumerations that behave like those of that module."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

# The module name of Triton's classes.
MODULE = "c_python_backend_utils"


class ArgumentMismatch(Exception):
    """An argument has an unsupported type. Raised in a function with a checked signature."""


def refused(name: str, signature: str, arguments: Sequence[Any], options: dict[str, Any]) -> TypeError:
    """Returns the error for a call of `name` with these arguments. `signature` is the only signature that the function accepts."""
    parts = []
    if arguments:
        parts.append(", ".join(map(repr, arguments)))
    if options:
        parts.append("kwargs: " + ", ".join("%s=%r" % option for option in options.items()))
    return TypeError(
        "%s(): incompatible %s arguments. The following argument types are supported:\n    1. %s\n\nInvoked with: %s"
        % (name, "constructor" if name == "__init__" else "function", signature, "; ".join(parts))
    )


def checked(signature: str, name: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a decorator that converts errors of calls to an error with `signature`.

    The error is raised for a wrong number of arguments, or if the function raises ArgumentMismatch."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        bind = inspect.signature(function).bind
        shown = name or function.__name__

        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            try:
                bind(*arguments, **options)
            except TypeError:
                pass
            else:
                try:
                    return function(*arguments, **options)
                except ArgumentMismatch:
                    pass
            raise refused(shown, signature, arguments[1:] if shown == "__init__" else arguments, options)

        return call

    return decorate


def text_of(value: object) -> str:
    """Returns a name or message of the model as str; bytes are decoded as UTF-8. Raises ArgumentMismatch for other types."""
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if not isinstance(value, str):
        raise ArgumentMismatch
    return value


class Enumeration:
    """A member of an enumeration. It is equal to its number."""

    __slots__ = ("name", "value")

    def __new__(cls, value: int) -> Enumeration:
        """Returns the member with this number. Raises ValueError if there is none."""
        for member in cls.__members__.values():
            if member.value == value:
                return member
        raise ValueError("%r is not a valid %s" % (value, cls.__name__))

    def __repr__(self) -> str:
        return "<%s.%s: %d>" % (type(self).__name__, self.name, self.value)

    def __str__(self) -> str:
        return "%s.%s" % (type(self).__name__, self.name)

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __hash__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (type(self), int)) and int(other) == self.value

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return type(self), (self.value,)


def enumeration(qualified_name: str, names: Sequence[str]) -> type:
    """Creates an enumeration. The members are attributes and are numbered from 0."""
    made = type(
        qualified_name.rsplit(".", 1)[-1],
        (Enumeration,),
        {"__slots__": (), "__module__": MODULE, "__qualname__": qualified_name, "__members__": {}},
    )
    for value, name in enumerate(names):
        member = object.__new__(made)
        member.name = name
        member.value = value
        made.__members__[name] = member
        setattr(made, name, member)
    return made
