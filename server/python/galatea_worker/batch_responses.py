"""The responses of a batch: what `execute` returned, and what the response senders of its requests sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .failures import Refused, failed_message, report
from .objects import InferenceResponse, TritonError

if TYPE_CHECKING:
    from typing import Any

    from .channel import Channel
    from .objects import InferenceRequest


def returned(requests: list[InferenceRequest], result: Any) -> list[InferenceResponse]:
    """What `execute` returned, one response for each request. Raises Refused in Triton's words where it is anything else."""
    if not isinstance(result, list):
        raise Refused("Expected a list in the execute return, found type '%s'." % type(result))
    if len(result) != len(requests):
        raise Refused(
            "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
            "InferenceRequest(s) size is:%d, and InferenceResponse(s) size is:%d\n" % (len(requests), len(result))
        )
    for request, response in zip(requests, result):
        if type(response) is InferenceResponse:
            continue
        if not isinstance(response, InferenceResponse) and not (response is None and request._reply is not None):
            raise Refused(
                "Expected an 'InferenceResponse' object in the execute function return list, found type '%s'."
                % type(response)
            )
    return result


def sent_or_returned(requests: list[InferenceRequest], result: Any) -> list[InferenceResponse]:
    """The responses of a batch some of whose requests have senders: what was sent, or is going to be, else what was returned."""
    result = returned(requests, [None] * len(requests) if result is None else result)
    responses = []
    for request, one in zip(requests, result):
        reply = request._reply
        response = (reply and (reply.response or one or reply.wait())) or one
        if response is None:
            response = InferenceResponse(
                error=TritonError("The response sender went away without having sent a response.")
            )
        responses.append(response)
    return responses


def sent_before(
    requests: list[InferenceRequest], error: BaseException, instance_name: str, channel: Channel
) -> list[InferenceResponse]:
    """Of a batch whose `execute` raised: what had been sent, and the error for the other requests. Raises it where nothing had been."""
    sent = [request._reply and request._reply.response for request in requests]
    if not any(sent):
        raise error
    message = failed_message(instance_name, error)
    report(channel, message, [request.request_id() for request in requests])
    failed = InferenceResponse(error=TritonError(message))
    return [response or failed for response in sent]
