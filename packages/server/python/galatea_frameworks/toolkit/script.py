"""A script: its functions, those that take their place where it leaves them out, and how they are called."""

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
    """The script as a module of its name; None where there is none. What it raises when it is imported goes on."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    return None if spec is None else importlib.import_module(name)


class Script:
    """Found by its name among the directories of `sys.path`. Raises what its import raises, and ValueError where its functions exclude each other."""

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
        """Whether the script says, by `joins_rows = True`, that its predict_fn may have the rows of several requests at once."""
        return self._transform_fn is None and getattr(self.module, "joins_rows", False) is True

    def load(self, model_dir: str) -> Any:
        """The model."""
        if self._pre_model_fn is not None:
            self.call(self._pre_model_fn, model_dir)
        model = self.call(self._model_fn, model_dir)
        if self._model_warmup_fn is not None:
            self.call(self._model_warmup_fn, model_dir, model)
        return model

    def transform(self, model: Any, data: Any, content_type: str | None, accept: str) -> Any:
        """One request's answer."""
        if self._transform_fn is not None:
            return self.call(self._transform_fn, model, data, content_type, accept)
        given = self.call(self.input_fn, data, content_type)
        prediction = self.call(self.predict_fn, given, model)
        if streams.is_stream(prediction) and not inspect.isgeneratorfunction(self.output_fn):
            return self._formatted(prediction, accept)
        return self.call(self.output_fn, prediction, accept)

    def _formatted(self, parts: Iterator[Any], accept: str) -> Iterator[Any]:
        """Each part of a prediction as the output_fn writes it. What is text or bytes already the default one leaves as it is."""
        for part in parts:
            if not self._has_output_fn and isinstance(part, (str, bytes, bytearray, memoryview)):
                yield part
            else:
                yield self.call(self.output_fn, part, accept)

    @property
    def says_execution_parameters(self) -> bool:
        """Whether it tells how transform jobs are to ask it."""
        return self._execution_parameters_fn is not None

    def execution_parameters(self) -> Any:
        """What its execution_parameters_fn tells."""
        return self.call(self._execution_parameters_fn)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """With the context behind its arguments where it has a parameter more. Raises TypeError where it has another number of them."""
        count = self._counts.get(function)
        if count is None:
            # Half as long to find out as a small model takes to predict; of functions that come and go it is not kept.
            count = len(inspect.signature(function).parameters)
            if function in self._known:
                self._counts[function] = count
        if count == len(arguments):
            return function(*arguments)
        if count == len(arguments) + 1:
            return function(*arguments, self._context)
        raise TypeError("%s takes %d arguments but %d were given." % (function.__name__, count, len(arguments)))
