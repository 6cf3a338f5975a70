"""Collects the responses of a batch: those that `execute` has returned, and those that response senders have sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .failures import ModelError, failed_message, report
from .objects import InferenceResponse, TritonError
from .response_sender import Reply

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .channel import Channel
    from .inference_request import InferenceRequest


_NONE_LATE = ()


def returned(requests: list[InferenceRequest], result: Any) -> tuple[list[InferenceResponse | None], Sequence[Reply]]:
    """Returns a response for each request (None if it may be sent later), and the replies of these late requests.

    Raises ModelError with Triton's text if `execute` has returned an invalid value.
    """
    if result is None:
        result = [None] * len(requests)
    if not isinstance(result, list):
        raise ModelError("Expected a list in the execute return, found type '%s'." % type(result))
    if len(result) != len(requests):
        raise ModelError(
            "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
            "InferenceRequest(s) size is:%d, and InferenceResponse(s) size is:%d\n" % (len(requests), len(result))
        )
    is_whole = True
    for request, response in zip(requests, result):
        if type(response) is InferenceResponse and request._reply is None:
            continue
        if response is not None and not isinstance(response, InferenceResponse):
            raise ModelError(
                "Expected an 'InferenceResponse' object in the execute function return list, found type '%s'."
                % type(response)
            )
        is_whole = False
    if is_whole:
        return result, _NONE_LATE
    responses = [_settled(*both) for both in zip(requests, result)]
    return responses, [request._reply for request, response in zip(requests, responses) if response is None]


def _settled(request: InferenceRequest, response: InferenceResponse | None) -> InferenceResponse | None:
    if request._reply is None:
        if response is not None:
            return response
        request._reply = Reply(request._request_key, request.request_id(), request._requested)
    return request._reply.settle(response)


def close(replies: Sequence[Reply], message: str) -> None:
    """Marks the whole batch as failed, so that no response can be sent any more."""
    for reply in replies:
        reply.settle(InferenceResponse(error=TritonError(message)))


def responses_before_error(
    requests: list[InferenceRequest], error: BaseException, instance_name: str, channel: Channel
) -> tuple[list[InferenceResponse], Sequence[Reply]]:
    """Returns the responses of a batch whose `execute` has raised: those that were sent, and the error for all other requests.

    Raises the error if no response was sent.
    """
    if all(request._reply is None for request in requests):
        raise error
    message = failed_message(instance_name, error)
    failed = InferenceResponse(error=TritonError(message))
    responses = [failed if request._reply is None else request._reply.settle(failed) for request in requests]
    if all(response is failed for response in responses):
        raise error
    report(channel, message, [request.request_id() for request in requests])
    return responses, _NONE_LATE
