"""Calls of TensorFlow Serving's REST API.

A call converts a document to tensors, runs them alone or together with other calls, and converts the results to a response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import examples, json_response, predict
from .errors import ServingError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .servable import Servable


class Call:
    """One call of one model version (servable). The constructor raises ServingError for an invalid document."""

    def __init__(self, servable: Servable, method: str, document: Any) -> None:
        self.servable = servable
        self._method = method
        self.signature_name = predict.signature_name(predict.checked_object(document))
        self._in_rows = False
        if method == "predict":
            signature = servable.signature(self.signature_name)
            if not signature.inputs:
                raise ServingError("Failed to get input map for signature: %s" % (self.signature_name or "DEFAULT"))
            found, self._in_rows = predict.feeds(document, signature)
            self.feeds = [found[name] for name in signature.inputs]
        else:
            self.feeds = [examples.serialized(document)]
            signature = servable.signatures.get(self.signature_name or "serving_default")
            if signature is None:
                raise ServingError(
                    "No signature was found with the name: %s" % (self.signature_name or "serving_default")
                )
            check = examples.check_classify if method == "classify" else examples.check_regress
            check(signature)

    @property
    def row_count(self) -> int | None:
        """The number of rows of the tensors; None if the tensors have different numbers of rows."""
        counts = {len(one) if one.ndim > 0 else None for one in self.feeds}
        return counts.pop() if len(counts) == 1 else None

    def kind(self) -> Any:
        """Returns a key for batching: calls with equal keys can run together."""
        shapes = tuple(one.shape[1:] for one in self.feeds)
        return id(self.servable), self.signature_name or "serving_default", shapes

    def run(self) -> bytes:
        """Runs the call alone and returns its JSON response. Raises ServingError."""
        return self.encode(self.servable.run(self.signature_name, self.feeds))

    def encode(self, outputs: dict[str, np.ndarray]) -> bytes:
        """Returns the JSON response for the results. Raises ServingError."""
        if self._method == "classify":
            return json_response.classes(examples.classification_results(outputs, len(self.feeds[0])))
        if self._method == "regress":
            return json_response.regressions(examples.regression_results(outputs, len(self.feeds[0])))
        return json_response.rows(outputs) if self._in_rows else json_response.columns(outputs)


def run_together(calls: Sequence[Call], rows_max: int) -> list[bytes | ServingError]:
    """Returns the response to each call. Calls with an equal `kind` run together, with up to `rows_max` rows at a time."""
    results = [None] * len(calls)
    waiting = {}
    for index, call in enumerate(calls):
        rows = call.row_count
        if rows is None:
            results[index] = ServingError(
                "Batching Run() input tensors must have at least one dimension, and equal 0th-dimension size"
            )
            continue
        if rows > rows_max:
            results[index] = ServingError("Task size %d is larger than maximum input batch size %d" % (rows, rows_max))
            continue
        group = waiting.setdefault(call.kind(), [])
        if sum(calls[one].row_count for one in group) + rows > rows_max:
            _run_group(calls, group, results)
            group.clear()
        group.append(index)
    for group in waiting.values():
        _run_group(calls, group, results)
    return results


def _run_group(calls: Sequence[Call], group: Sequence[int], results: list[bytes | ServingError | None]) -> None:
    members = [calls[index] for index in group]
    if len(members) > 1:
        try:
            parts = _run_joined(members)
        except ServingError:
            # Invalid values of one call may have failed the whole run. Therefore each call is run again alone, and only the invalid one
            # fails.
            parts = None
    else:
        parts = None
    for member, index in enumerate(group):
        try:
            results[index] = members[member].run() if parts is None else members[member].encode(parts[member])
        except ServingError as error:
            results[index] = error


def _run_joined(members: Sequence[Call]) -> list[dict[str, np.ndarray]]:
    first = members[0]
    joined = [np.concatenate(column) for column in zip(*(one.feeds for one in members))]
    outputs = first.servable.run(first.signature_name, joined)
    counts = [one.row_count for one in members]
    for value in outputs.values():
        if value.ndim == 0:
            raise ServingError("Batched output tensor has 0 dimensions")
        if len(value) != sum(counts):
            raise ServingError(
                "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes of the input tensors"
            )
    ends = np.cumsum(counts)
    return [{name: value[end - count : end] for name, value in outputs.items()} for end, count in zip(ends, counts)]
