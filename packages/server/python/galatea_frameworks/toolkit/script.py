"""A user's script: the functions that it defines, defaults for missing ones, and how they are called."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
from typing import TYPE_CHECKING

from . import streams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any

    from .context import Context
    from .defaults import DefaultInferenceHandler

DEFAULT_PROGRAM = "inference.py"


def _found(name: str) -> ModuleType | None:
    """Imports the script by its name; returns None if it does not exist. Raises the exceptions of the import."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    return None if spec is None else importlib.import_module(name)


class Script:
    """A script, imported from `sys.path`.

    The constructor raises the exceptions of the import, and ValueError if the script defines functions that exclude each other.
    """

    def __init__(self, program: str, defaults: DefaultInferenceHandler, context: Context) -> None:
        name = program[:-3] if program.endswith(".py") else program
        name = name.replace(os.sep, ".")
        self._context = context
        self.module = _found(name)
        own = {} if self.module is None else vars(self.module)
        transform_fn = own.get("transform_fn")
        if transform_fn and (own.get("input_fn") or own.get("predict_fn") or own.get("output_fn")):
            raise ValueError(
                "Cannot use transform_fn implementation in conjunction with "
                "input_fn, predict_fn, and/or output_fn implementation"
            )

        def function(name: str) -> Callable[..., Any]:
            return own.get(name) or getattr(defaults, "default_" + name, None)

        self._pre_model_fn = function("pre_model_fn")
        self._model_fn = function("model_fn")
        self._model_warmup_fn = function("model_warmup_fn")
        self._transform_fn = transform_fn
        self._execution_parameters_fn = own.get("execution_parameters_fn")
        self.input_fn = function("input_fn")
        self.predict_fn = function("predict_fn")
        self.output_fn = function("output_fn")
        self._has_output_fn = bool(own.get("output_fn"))
        self._known = (transform_fn, self.input_fn, self.predict_fn, self.output_fn)
        self._counts = {}

    @property
    def joins_rows(self) -> bool:
        """True if the script sets `joins_rows = True`, which declares that predict_fn accepts the concatenated rows of several requests."""
        return self._transform_fn is None and getattr(self.module, "joins_rows", False) is True

    def load(self, model_dir: str) -> Any:
        """Loads and returns the model."""
        if self._pre_model_fn is not None:
            self.call(self._pre_model_fn, model_dir)
        model = self.call(self._model_fn, model_dir)
        if self._model_warmup_fn is not None:
            self.call(self._model_warmup_fn, model_dir, model)
        return model

    def transform(self, model: Any, data: Any, content_type: str | None, accept: str) -> Any:
        """Runs input_fn, predict_fn and output_fn, or transform_fn, for one request. Returns the response."""
        if self._transform_fn is not None:
            return self.call(self._transform_fn, model, data, content_type, accept)
        given = self.call(self.input_fn, data, content_type)
        prediction = self.call(self.predict_fn, given, model)
        if streams.is_stream(prediction) and not inspect.isgeneratorfunction(self.output_fn):
            return self._formatted(prediction, accept)
        return self.call(self.output_fn, prediction, accept)

    def _formatted(self, parts: Iterator[Any], accept: str) -> Iterator[Any]:
        """Yields the chunks of a prediction, each encoded by the output_fn. The default output_fn leaves text and bytes unchanged."""
        for part in parts:
            if not self._has_output_fn and isinstance(part, (str, bytes, bytearray, memoryview)):
                yield part
            else:
                yield self.call(self.output_fn, part, accept)

    @property
    def has_execution_parameters(self) -> bool:
        """True if the script defines execution parameters for batch transform jobs."""
        return self._execution_parameters_fn is not None

    def execution_parameters(self) -> Any:
        """Returns the result of the script's execution_parameters_fn."""
        return self.call(self._execution_parameters_fn)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function of the script. If the function has one more parameter, the context is the last argument.

        Raises TypeError for any other number of parameters.
        """
        count = self._counts.get(function)
        if count is None:
            # This inspection takes half as long as the prediction of a small model. The result is not cached here, because the function may
            # be temporary.
            count = len(inspect.signature(function).parameters)
            if function in self._known:
                self._counts[function] = count
        if count == len(arguments):
            return function(*arguments)
        if count == len(arguments) + 1:
            return function(*arguments, self._context)
        raise TypeError("%s takes %d arguments but %d were given." % (function.__name__, count, len(arguments)))
