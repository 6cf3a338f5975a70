"""Calls as lines of JSON, read from standard input and answered on standard output. Bytes are `{"$bytes": base64}`, times `{"$time": text}`."""

import base64
import datetime
import json
import sys


class failure:
    """What a service said instead of an answer."""

    def __init__(self, code, message, kind=""):
        self.code, self.message, self.kind = code, message, kind


def decoded(value):
    if isinstance(value, dict):
        if "$time" in value:
            # Clients read texts where they take times.
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
    """A stream's events to their end; of a session, which has none, the first."""
    for event in stream:
        yield event
        if "sessionStart" in event:
            stream.close()
            return


def serve(call, wait):
    """Answers until the input ends. `call` and `wait` are given a service, a name and members, and give members or a `failure`."""
    out = sys.stdout
    # What a client prints by itself is no answer.
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
