"""The common base of the backends for model files. It executes a batch of requests in one run, and gives each request its rows of the
results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import triton_python_backend_utils as pb_utils

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from triton_python_backend_utils import InferenceRequest, InferenceResponse, Tensor


class InvalidRequest(Exception):
    """A request whose tensor is invalid for the model, with the code and text of its error response."""

    def __init__(self, message: str, code: Any = pb_utils.TritonError.INVALID_ARG) -> None:
        super().__init__(message)
        self.code = code


class BatchedModel:
    """Executes requests with a framework. Subclasses convert tensors to the framework's values and run them.

    An invalid request fails alone. The subclass's `initialize` must set `input_names`, in the order in which the subclass expects values,
    and `batches`: True if the first dimension of each tensor is the batch dimension.
    """

    input_names: Sequence[str]
    batches: bool

    def to_value(self, tensor: Tensor | None, name: str) -> Any:
        """Converts a request's tensor to a value of the framework; None for an absent one. Raises InvalidRequest."""
        raise NotImplementedError

    def joined(self, column: Sequence[Any]) -> Any:
        """Concatenates the values of one input of several requests."""
        raise NotImplementedError

    def columns(
        self, inputs: Sequence[Any], rows: list[int] | None, requests: Sequence[InferenceRequest]
    ) -> Iterable[Iterable[Tensor]]:
        """Runs the model with a value for each input.

        Returns, for each output, a tensor for each request. `rows` has the number of rows of each request; it is None for a model without
        batching, which gets one request. Raises InvalidRequest, and exceptions of the framework.
        """
        raise NotImplementedError

    def failure(self, error: Exception) -> str:
        """Returns the error text for requests whose run has raised an exception. Raises exceptions that fail the whole batch."""
        raise NotImplementedError

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        """Runs the whole batch at once. A model without batching gets its requests one by one."""
        if self.batches:
            return self._run_batch(requests)
        return [response for request in requests for response in self._run_batch([request])]

    def _run_batch(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        responses = [None] * len(requests)
        valid = self._convert_inputs(requests, responses)
        if valid:
            try:
                results = self._run_valid(valid, [requests[index] for index, _, _ in valid])
            except InvalidRequest as error:
                results = [_failed(str(error), error.code)] * len(valid)
            except Exception as error:  # noqa: BLE001 - an exception of the program becomes the error response
                results = [_failed(self.failure(error))] * len(valid)
            for (index, _, _), result in zip(valid, results):
                responses[index] = result
        return responses

    def _convert_inputs(
        self, requests: list[InferenceRequest], responses: list[InferenceResponse | None]
    ) -> list[tuple[int, list[Any], int]]:
        """Returns index, values and number of rows of each valid request. Sends an error response to each invalid one."""
        valid = []
        for index, request in enumerate(requests):
            given = {one.name(): one for one in request.inputs()}
            try:
                values = [self.to_value(given.get(name), name) for name in self.input_names]
            except InvalidRequest as error:
                responses[index] = _failed(str(error), error.code)
                continue
            valid.append((index, values, given[self.input_names[0]].shape()[0] if self.batches else 1))
        return valid

    def _run_valid(
        self, valid: list[tuple[int, list[Any], int]], requests: list[InferenceRequest]
    ) -> list[InferenceResponse]:
        batch = [values for _, values, _ in valid]
        inputs = batch[0] if len(batch) == 1 else [self.joined(column) for column in zip(*batch)]
        rows = [count for _, _, count in valid] if self.batches else None
        return [pb_utils.InferenceResponse(list(row)) for row in zip(*self.columns(inputs, rows, requests))]


def split_rows(name: str, whole: Any, rows: list[int] | None) -> list[Any]:
    """Splits an output into the rows of each request. Raises InvalidRequest if the number of rows is wrong."""
    if rows is None:
        return [whole]
    if len(whole) != sum(rows):
        raise InvalidRequest(
            "output '%s' has %d rows for a batch of %d" % (name, len(whole), sum(rows)), pb_utils.TritonError.INTERNAL
        )
    if len(rows) == 1:
        return [whole]
    found = []
    begin = 0
    for count in rows:
        found.append(whole[begin : begin + count])
        begin += count
    return found


def _failed(message: str, code: Any = pb_utils.TritonError.INTERNAL) -> InferenceResponse:
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, code))
