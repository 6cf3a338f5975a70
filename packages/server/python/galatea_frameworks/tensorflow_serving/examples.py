"""The classify and regress APIs: converts JSON objects to `tf.train.Example`, and interprets the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tensorflow.core.example import example_pb2, feature_pb2
from tensorflow.core.framework import types_pb2

from .errors import ServingError
from .json_text import bytes_of, shown, type_name
from .tensor_values import decoded, is_base64

if TYPE_CHECKING:
    from typing import Any

    from .servable import Signature

_CONTEXT = "context"
_EXAMPLES = "examples"
_INPUTS = "inputs"
_CLASSES = "classes"
_SCORES = "scores"
_OUTPUTS = "outputs"
_INT64_MAX = 2**63
_KINDS = {"bytes_list": "bytes", "float_list": "float", "int64_list": "int64"}


def serialized(document: dict[str, Any]) -> np.ndarray:
    """Returns the serialized examples of a request. Features of the request's `context` are added to each example. Raises ServingError."""
    shared = b""
    if _CONTEXT in document:
        shared = _example(document[_CONTEXT]).SerializeToString()
    if _EXAMPLES not in document:
        raise ServingError(
            "JSON Value: %s When method is classify, key '%s' is expected and was not found"
            % (shown(document), _EXAMPLES)
        )
    listed = document[_EXAMPLES]
    if not isinstance(listed, list):
        raise ServingError("JSON Value: %s Expecting '%s' value to be an list/array" % (shown(document), _EXAMPLES))
    if not listed:
        raise ServingError("JSON Value: %s '%s' value is an empty array" % (shown(document), _EXAMPLES))
    found = np.empty(len(listed), dtype=np.object_)
    for place, one in enumerate(listed):
        # The bytes can be concatenated, because concatenated protobuf messages are parsed as one merged message.
        found[place] = shared + _example(one).SerializeToString()
    return found


def _example(value: Any) -> example_pb2.Example:
    if not isinstance(value, dict):
        raise ServingError("Example must be JSON object but got JSON %s" % type_name(value))
    example = example_pb2.Example()
    for name, content in value.items():
        bytes_of(name)
        try:
            feature = example.features.feature[name]
        except ValueError:
            raise ServingError("Feature: %r has a name that is not valid UTF-8" % name) from None
        for one in content if isinstance(content, list) else [content]:
            _add(one, name, feature)
    return example


def _add(value: Any, name: str, feature: feature_pb2.Feature) -> None:
    if value is None or isinstance(value, list) or (isinstance(value, dict) and not is_base64(value)):
        raise ServingError("Feature: %s has element with unexpected JSON type: %s" % (name, type_name(value)))
    if isinstance(value, dict):
        kind, value = "bytes_list", decoded(value)
    elif isinstance(value, str):
        kind, value = "bytes_list", bytes_of(value)
    elif isinstance(value, float):
        kind = "float_list"
    else:
        kind, value = "int64_list", int(value)
        if not -_INT64_MAX <= value < _INT64_MAX:
            raise ServingError("Feature: %s has uint64_t element. Only int64_t is supported." % name)
    already = feature.WhichOneof("kind")
    if already not in (None, kind):
        raise ServingError("Unexpected element type in feature: %s expecting type: %s" % (name, _KINDS[already]))
    getattr(feature, kind).value.append(value)


def check_classify(signature: Signature) -> None:
    """Raises ServingError for a signature that does not support classification."""
    _check_input(signature, "classification")
    if len(signature.outputs) not in (1, 2):
        raise ServingError("Expected one or two output Tensors, found %d" % len(signature.outputs))
    if _CLASSES not in signature.outputs and _SCORES not in signature.outputs:
        raise ServingError(
            'Expected classification signature outputs to contain at least one of "%s" or "%s". Signature was: %s'
            % (_CLASSES, _SCORES, signature.shown())
        )


def check_regress(signature: Signature) -> None:
    """Raises ServingError for a signature that does not support regression, which returns one number for each example."""
    _check_input(signature, "regression")
    if len(signature.outputs) != 1:
        raise ServingError("Expected one output Tensor.")
    if _OUTPUTS not in signature.outputs:
        raise ServingError("No regression outputs found in SignatureDef: %s" % signature.shown())


def _check_input(signature: Signature, what: str) -> None:
    if len(signature.inputs) != 1:
        raise ServingError("Expected one input Tensor.")
    if _INPUTS not in signature.inputs:
        raise ServingError("No %s inputs found in SignatureDef: %s" % (what, signature.shown()))
    found = signature.inputs[_INPUTS].datatype
    if found != types_pb2.DT_STRING:
        raise ServingError(
            "Expected the input of a %s signature to be serialized examples, DT_STRING. Got: %s"
            % (what, types_pb2.DataType.Name(found))
        )


def classification_results(outputs: dict[str, np.ndarray], count: int) -> list[list[tuple[bytes, np.float32]]]:
    """Returns the classes of each example as (label, score). Raises ServingError."""
    classes, scores = outputs.get(_CLASSES), outputs.get(_SCORES)
    for name, found, kind, words in (
        ("classes", classes, np.object_, "DT_STRING"),
        ("scores", scores, np.float32, "DT_FLOAT"),
    ):
        if found is None:
            continue
        if found.ndim != 2:
            raise ServingError(
                "Expected Tensor shape: [batch_size num_classes] but got [%s]" % ",".join(map(str, found.shape))
            )
        if found.dtype != kind:
            raise ServingError("Expected %s Tensor of %s. Got: %s" % (name, words, found.dtype))
        if len(found) != count:
            raise ServingError("Expected %s output batch size of %d. Got: %d" % (name, count, len(found)))
    if classes is not None and scores is not None and classes.shape != scores.shape:
        raise ServingError(
            "Tensors class and score should match in dim_size(1). Got %d vs. %d" % (classes.shape[1], scores.shape[1])
        )
    if classes is None:
        classes = np.full(scores.shape, b"", dtype=np.object_)
    if scores is None:
        scores = np.zeros(classes.shape, dtype=np.float32)
    return [list(zip(labels, numbers)) for labels, numbers in zip(classes, scores)]


def regression_results(outputs: dict[str, np.ndarray], count: int) -> np.ndarray:
    """Returns the regression result of each example. Raises ServingError."""
    found = outputs[_OUTPUTS]
    if found.ndim not in (1, 2) or (found.ndim == 2 and found.shape[1] != 1):
        raise ServingError(
            "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got [%s]"
            % ",".join(map(str, found.shape))
        )
    if len(found) != count:
        raise ServingError("Input batch size did not match output batch size: %d vs. %d" % (count, len(found)))
    if found.dtype != np.float32:
        raise ServingError("Expected output Tensor of DT_FLOAT.  Got: %s" % found.dtype)
    return found.reshape(-1)
