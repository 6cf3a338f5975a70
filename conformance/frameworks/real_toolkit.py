"""Runs requests with SageMaker's inference toolkit: reads scripts and requests as JSON from stdin, and writes responses to stdout.

In: [{"files": {name: text}, "requests": [{"body": base64, "headers": {name: value}}]}]
Out: for each script {"error": text or null, "answers": [{"status": n, "type": text or null, "body": base64}]}
"""

import base64
import contextlib
import json
import os
import sys
import tempfile
import traceback

from sagemaker_inference.transformer import Transformer


class Processor:
    def __init__(self, headers):
        self.headers = headers

    def get_request_properties(self):
        return self.headers


class Context:
    """The request that multi-model-server passes to the toolkit."""

    def __init__(self, model_dir, headers):
        self.system_properties = {"model_dir": model_dir}
        self.request_processor = [Processor(headers)]
        self.status = 200
        self.type = None

    def set_response_status(self, code, phrase):
        self.status = int(code)

    def set_response_content_type(self, place, value):
        self.type = value


def sent(body):
    """Converts a handler's result to a response as multi-model-server does."""
    if isinstance(body, str):
        return body.encode()
    return bytes(body) if isinstance(body, (bytes, bytearray)) else json.dumps(body).encode()


def run(script, handler=None):
    """Runs a script. `handler` has the functions that replace missing ones of the script; None for the toolkit's defaults."""
    with tempfile.TemporaryDirectory() as model_dir:
        for name, text in script["files"].items():
            path = os.path.join(model_dir, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(text.encode() if isinstance(text, str) else text)
        sys.path.insert(0, os.path.join(model_dir, "code"))
        sys.modules.pop("inference", None)
        try:
            transformer = Transformer(default_inference_handler=handler)
            try:
                transformer.validate_and_initialize(model_dir=model_dir, context=Context(model_dir, {}))
            except Exception as error:
                return {"error": traceback.format_exception_only(type(error), error)[-1].strip(), "answers": []}
            return {"error": None, "answers": [answer(transformer, model_dir, one) for one in script["requests"]]}
        finally:
            sys.path.pop(0)


def answer(transformer, model_dir, request):
    context = Context(model_dir, request["headers"])
    [body] = transformer.transform([{"body": bytearray(base64.b64decode(request["body"]))}], context)
    return {"status": context.status, "type": context.type, "body": base64.b64encode(sent(body)).decode()}


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        found = [run(script) for script in json.load(sys.stdin)]
    json.dump(found, sys.stdout)
