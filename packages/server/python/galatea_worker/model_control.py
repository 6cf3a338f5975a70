"""Loads and unloads models of the server, and queries their readiness, for pb_utils."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import current_worker
from .objects import TritonModelException
from .signatures import checked, text_of

if TYPE_CHECKING:
    from typing import Any


@checked("(model_name: str, config: str = '', files: object = None) -> None")
def load_model(model_name: str, config: str = "", files: dict[str, bytes] | None = None) -> None:
    """Loads a model by name. `config` is JSON that replaces the model's configuration; `files` maps 'file:<path>' to contents."""
    contents = {}
    for path, content in (files or {}).items():
        if not isinstance(content, bytes):
            raise TypeError("Object of type '%s' is not an instance of 'bytes'" % type(content).__name__)
        contents[text_of(path)] = content
    config = text_of(config)
    text = {
        "config": config or None,
        "files": list(contents),
        "lengths": [len(content) for content in contents.values()],
    }
    _control(1, model_name, text, list(contents.values()), "Failed to load model: ")


@checked("(model_name: str, unload_dependents: bool = False) -> None")
def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Unloads a model after its running executions. `unload_dependents` also unloads the steps of an ensemble that were loaded only for it."""
    _control(2, model_name, {"dependents": bool(unload_dependents)}, [], "Failed to unload model: ")


@checked("(model_name: str, model_version: str = '') -> bool")
def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Returns whether a model is ready."""
    text = {"version": text_of(model_version)}
    return _control(3, model_name, text, [], "Failed to check model readiness: ")["ready"]


def _control(verb: int, model_name: str, text: dict[str, Any], files: list[bytes], prefix: str) -> dict[str, Any]:
    whole = {
        "model": text_of(model_name),
        "version": "",
        "config": None,
        "dependents": False,
        "files": [],
        "lengths": [],
    }
    whole.update(text)
    said = current_worker.calls().control(verb, whole, files)
    if "message" in said:
        name = current_worker.instance_name()
        raise TritonModelException(
            "%sFailed to process the request for model '%s', message: %s" % (prefix, name, said["message"])
        )
    return said
