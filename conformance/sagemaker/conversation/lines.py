"""Reads calls as lines of JSON from stdin and writes their results to stdout. Bytes are `{"$bytes": base64}`, times `{"$time": text}`."""

import base64
import datetime
import json
import sys


class failure:
    """An error of a service."""

    def __init__(self, code, message, kind=""):
        self.code, self.message, self.kind = code, message, kind


def decoded(value):
    if isinstance(value, dict):
        if "$time" in value:
            # Clients accept texts as times.
            return value["$time"]
        return base64.b64decode(value["$bytes"]) if "$bytes" in value else {k: decoded(v) for k, v in value.items()}
    return [decoded(each) for each in value] if isinstance(value, list) else value


def encoded(value):
    if isinstance(value, dict):
        return {str(name): encoded(each) for name, each in value.items()}
    if isinstance(value, (bytes, bytearray)):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, datetime.datetime):
        return {"$time": value.isoformat()}
    if hasattr(value, "read"):
        return encoded(value.read())
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    if hasattr(value, "close"):
        return [encoded(each) for each in events(value)]
    return [encoded(each) for each in value]


def events(stream):
    """Returns all events of a stream, or the first event of a session, which has no end."""
    for event in stream:
        yield event
        if "sessionStart" in event:
            stream.close()
            return


def serve(call, wait):
    """Runs calls until the input ends. `call` and `wait` get a service, a name and members, and return members or a `failure`."""
    out = sys.stdout
    # Output that a client prints itself must not be mistaken for a result.
    sys.stdout = sys.stderr
    for line in sys.stdin:
        asked = json.loads(line)
        what = call if asked["kind"] == "call" else wait
        answer = what(asked["service"], asked["name"], decoded(asked["input"]))
        told = (
            {"code": answer.code, "message": answer.message, "kind": answer.kind}
            if isinstance(answer, failure)
            else {"answer": encoded(answer)}
        )
        out.write(json.dumps(told) + "\n")
        out.flush()
