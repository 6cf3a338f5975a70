"""The predict API: converts rows ("instances") or columns ("inputs") to the tensors of a signature."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .errors import ServingError
from .json_text import shown
from .tensor_values import is_base64, to_tensor

if TYPE_CHECKING:
    from typing import Any

    from .servable import Signature

_INSTANCES = "instances"
_INPUTS = "inputs"
_SIGNATURE = "signature_name"


def checked_object(document: Any) -> dict[str, Any]:
    """Returns the document of a request. Raises ServingError if it is not a JSON object."""
    if not isinstance(document, dict):
        raise ServingError("JSON Value: %s Is not object" % shown(document))
    return document


def signature_name(document: dict[str, Any]) -> str:
    """Returns the requested signature's name; "" if the request contains none."""
    name = document.get(_SIGNATURE, "")
    if not isinstance(name, str):
        raise ServingError(
            "JSON Value: %s not formatted correctly. 'signature_name' key must be a string value." % shown(document)
        )
    return name


def feeds(document: dict[str, Any], signature: Signature) -> tuple[dict[str, np.ndarray], bool]:
    """Returns a tensor for each input, and whether the request is in row format. The response then is too. Raises ServingError."""
    if _INSTANCES in document and _INPUTS in document:
        raise ServingError(
            "JSON Value: %s Not formatted correctly expecting only one of '%s' or '%s' keys to exist "
            % (shown(document), _INPUTS, _INSTANCES)
        )
    if _INSTANCES in document:
        rows = document[_INSTANCES]
        if not isinstance(rows, list):
            raise ServingError("JSON Value: %s Expecting '%s' to be an list/array" % (shown(document), _INSTANCES))
        if not rows:
            raise ServingError("JSON Value: %s No values in '%s' array" % (shown(document), _INSTANCES))
        return _of_rows(rows, signature), True
    if _INPUTS in document:
        return _of_columns(document[_INPUTS], signature), False
    raise ServingError("Missing 'inputs' or 'instances' key")


def _of_columns(value: Any, signature: Signature) -> dict[str, np.ndarray]:
    if not isinstance(value, dict) or is_base64(value):
        if len(signature.inputs) > 1:
            raise ServingError(
                "inputs is a plain value/list, but expecting an object as multiple input tensors required as per tensorinfo_map"
            )
        value = dict.fromkeys(signature.inputs, value)
    found = {}
    for name, port in signature.inputs.items():
        if name not in value:
            raise ServingError("Missing named input: %s in 'inputs' object." % name)
        found[name] = to_tensor(value[name], port.datatype)
    return found


def _is_named(row: Any) -> bool:
    return isinstance(row, dict) and not is_base64(row)


def _of_rows(rows: list[Any], signature: Signature) -> dict[str, np.ndarray]:
    if len(signature.inputs) > 1 and not isinstance(rows[0], dict):
        raise ServingError(
            "instances is a plain list, but expecting list of objects as multiple input tensors required as per tensorinfo_map"
        )
    named = _is_named(rows[0])
    try:
        return _named_rows(rows, signature) if named else _plain_rows(rows, signature)
    except ServingError:
        # TensorFlow Serving's error names the first invalid row, which the conversion of all rows at once does not determine.
        _explain(rows, signature, named)
        raise


def _named_rows(rows: list[Any], signature: Signature) -> dict[str, np.ndarray]:
    names = signature.inputs.keys()
    if not all(_is_named(row) and row.keys() == names for row in rows):
        raise ServingError("rows are of different kinds")
    return {name: to_tensor([row[name] for row in rows], port.datatype) for name, port in signature.inputs.items()}


def _plain_rows(rows: list[Any], signature: Signature) -> dict[str, np.ndarray]:
    (name, port), *_ = signature.inputs.items()
    if any(_is_named(row) for row in rows):
        raise ServingError("rows are of different kinds")
    return {name: to_tensor(rows, port.datatype)}


def _explain(rows: list[Any], signature: Signature, named: bool) -> None:
    """Checks the rows one by one and raises the error of the first invalid row."""
    shapes = {}
    (only, _), *_ = signature.inputs.items()
    for place, row in enumerate(rows):
        if not named:
            if _is_named(row):
                raise ServingError("Expecting value/list but got object at item %d of input list" % place)
            _explain_item(row, only, "element: %d" % place, signature, shapes)
            continue
        if not _is_named(row):
            raise ServingError("Expecting object but got list at item %d of input list" % place)
        for name, value in row.items():
            _explain_item(value, name, "element: %d key: %s" % (place, name), signature, shapes)
        if row.keys() != signature.inputs.keys():
            raise ServingError(
                "Failed to process element: %d of 'instances' list. JSON object: %s keys must be equal to: %s"
                % (place, shown(row), ",".join(sorted(signature.inputs)))
            )


def _explain_item(value: Any, name: str, where: str, signature: Signature, shapes: dict[str, tuple[int, ...]]) -> None:
    try:
        if name not in signature.inputs:
            raise ServingError("JSON object: does not have named input: %s" % name)
        shape = to_tensor(value, signature.inputs[name].datatype).shape
        expected = shapes.setdefault(name, shape)
        if math.prod(shape) != math.prod(expected):
            raise ServingError("Expecting tensor size: %d but got: %d" % (math.prod(expected), math.prod(shape)))
        if shape != expected:
            raise ServingError("Expecting shape %s but got: %s" % (_dims(expected), _dims(shape)))
    except ServingError as error:
        raise ServingError("Failed to process %s of 'instances' list. Error: %s" % (where, error.shown())) from None


def _dims(shape: tuple[int, ...]) -> str:
    return "[%s]" % ",".join(map(str, shape))
