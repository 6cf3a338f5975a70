"""Tests OpenAI's client with endpoints: chats, completions, embeddings, responses and models, whole and as streams.

python openai_chat.py chats|components|ended|token
"""

import base64
import io
import os
import re
import sys
import time

import boto3
import openai
from archives import archive
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from statements import BUCKET, IMAGE, POLL_SECONDS, ROLE, finish, proven, s3, sagemaker

ENDPOINT = "conformance-chat"
MODEL = '''
import json
import threading
import numpy as np
import triton_python_backend_utils as pb_utils

cancelled = threading.Event()

class TritonPythonModel:
    """Says the words of the last message in the reverse order."""

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            try:
                self.answer(request, sender)
            except Exception as error:
                sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error))))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def answer(self, request, sender):
        def send(document):
            text = json.dumps({"id": "x", "created": 0, "model": asked["model"], **document}, indent=1)
            array = np.array([text.encode()], dtype=object)
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("openai_response", array)]))

        asked = json.loads(pb_utils.get_input_tensor_by_name(request, "openai_request").as_numpy()[0])
        path = json.loads(request.parameters())["openai_path"]
        if path == "/v1/embeddings":
            data = [{"object": "embedding", "index": 0, "embedding": [float(len(asked["input"])), 0.5]}]
            return send({"object": "list", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}})
        if path == "/v1/responses":
            text = asked["input"][::-1]
            if not asked.get("stream"):
                content = [{"type": "output_text", "text": text, "annotations": []}]
                message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}
                return send({"object": "response", "status": "completed", "output": [message]})
            for letter in text:
                send({"type": "response.output_text.delta", "delta": letter, "sequence_number": 0})
            return None
        said = asked["messages"][-1]["content"] if path == "/v1/chat/completions" else asked["prompt"]
        if said == "raise":
            raise ValueError("no such word")
        words = said.split()[::-1]
        kind = "chat.completion" if path == "/v1/chat/completions" else "text_completion"
        usage = {"prompt_tokens": len(words), "completion_tokens": len(words), "total_tokens": 2 * len(words)}
        if not asked.get("stream"):
            text = " ".join(words)
            told = {"message": {"role": "assistant", "content": text}} if kind == "chat.completion" else {"text": text}
            return send({"object": kind, "choices": [{"index": 0, "finish_reason": "stop", **told}], "usage": usage})
        count = 0
        while said == "endless" or count < len(words):
            if sender.is_cancelled():
                return cancelled.set()
            delta = {"delta": {"content": words[count % len(words)] + " "}, "index": 0}
            send({"object": "chat.completion.chunk", "choices": [delta]})
            count += 1
            if said == "breaks midway":
                raise ValueError("it broke")
        send({"object": "chat.completion.chunk", "choices": [{"delta": {}, "index": 0, "finish_reason": "stop"}]})
'''
CONFIG = """
name: "chat"
backend: "python"
model_transaction_policy { decoupled: true }
input [ { name: "openai_request" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "openai_response" data_type: TYPE_STRING dims: [ 1 ] } ]
"""


def token(expires=3600):
    """Creates a token as sagemaker.core.token_generator does."""
    session = boto3.Session()
    host = "sagemaker.amazonaws.com"
    asked = {"method": "POST", "url": "https://%s/" % host, "headers": {"host": host}}
    request = AWSRequest(params={"Action": "CallWithBearerToken"}, **asked)
    SigV4QueryAuth(session.get_credentials(), "sagemaker", "us-east-1", expires=expires).add_auth(request)
    presigned = request.url.replace("https://", "") + "&Version=1"
    return "sagemaker-api-key-" + base64.b64encode(presigned.encode()).decode()


def created():
    s3.create_bucket(Bucket=BUCKET)
    model = archive({"chat/config.pbtxt": CONFIG, "chat/1/model.py": MODEL})
    s3.upload_fileobj(io.BytesIO(model), BUCKET, "chat.tar.gz")
    container = {"Image": IMAGE, "ModelDataUrl": "s3://%s/chat.tar.gz" % BUCKET}
    sagemaker.create_model(ModelName=ENDPOINT, ExecutionRoleArn=ROLE, PrimaryContainer=container)
    variant = {"VariantName": "a", "ModelName": ENDPOINT, "InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
    sagemaker.create_endpoint_config(EndpointConfigName=ENDPOINT, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=ENDPOINT, EndpointConfigName=ENDPOINT)
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=ENDPOINT)


def said(text):
    return [{"role": "system", "content": "be brief"}, {"role": "user", "content": text}]


def fails(statement, kind, pattern, call):
    try:
        call()
    except openai.APIError as error:
        matches = type(error) is kind and re.search(pattern, str(error))
        proven(statement, matches, "" if matches else "%s: %s" % (type(error).__name__, error))
    else:
        proven(statement, False, "the call succeeded")


def chats(client, model, where):
    whole = client.chat.completions.create(model=model, messages=said("one two three"))
    proven("a chat %s" % where, whole.choices[0].message.content == "three two one", str(whole))
    stream = client.chat.completions.create(model=model, messages=said("one two three"), stream=True)
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    proven("a chat as a stream %s" % where, (text, len(chunks)) == ("three two one ", 4), str(chunks))


def chat_all():
    url = os.environ["AWS_ENDPOINT_URL"]
    below = "%s/endpoints/%s/openai/v1" % (url, ENDPOINT)
    own = {"api_key": token(), "max_retries": 0, "http_client": openai.DefaultHttpxClient(trust_env=False)}
    client = openai.OpenAI(base_url=below, **own)
    chats(client, "any", "of an endpoint")
    chats(openai.OpenAI(base_url="%s/v1" % url, **own), ENDPOINT, "by the name of its model")
    found = client.completions.create(model="any", prompt="one two").choices[0].text
    proven("a completion", found == "two one", found)
    found = client.embeddings.create(model="any", input="four", encoding_format="float").data[0].embedding
    proven("an embedding", found == [4.0, 0.5], str(found))
    found = client.responses.create(model="any", input="one").output_text
    proven("a response", found == "eno", found)
    events = client.responses.create(model="any", input="one", stream=True)
    found = [event.delta for event in events if event.type == "response.output_text.delta"]
    proven("a response as a stream", found == ["e", "n", "o"], str(found))
    for base in (below, "%s/v1" % url):
        asks = openai.OpenAI(base_url=base, **own).models
        models = [model.id for model in asks.list()]
        proven("the models at %s" % base, models == [ENDPOINT], str(models))
        proven("one of them", asks.retrieve(ENDPOINT).id == ENDPOINT)
        fails("a missing model", openai.NotFoundError, "nobody.* does not exist", lambda: asks.retrieve("nobody"))

    chat = client.chat.completions
    stream = chat.create(model="any", messages=said("endless"), stream=True)
    found = [next(stream).choices[0].delta.content for _ in range(3)]
    proven("the first chunk of an endless stream", found == ["endless "] * 3, str(found))
    stream.close()
    ask = lambda text, **more: chat.create(model="any", messages=said(text), **more)
    fails("an error of the model", openai.InternalServerError, "no such word", lambda: ask("raise"))
    fails("the same of a stream", openai.InternalServerError, "no such word", lambda: ask("raise", stream=True))
    broken = ask("breaks midway", stream=True)
    fails("an error during a stream", openai.APIError, "it broke", lambda: list(broken))
    other = openai.OpenAI(base_url="%s/v1" % url, **own)
    ask = lambda model: other.chat.completions.create(model=model, messages=said("x"))
    fails("a missing endpoint", openai.NotFoundError, "nobody.* does not exist", lambda: ask("nobody"))
    fails(
        "a target model on a single-model endpoint",
        openai.BadRequestError,
        "target model",
        lambda: ask(ENDPOINT + "/x"),
    )
    for why, key in (("no token", "unused"), ("a token with too long a validity", token(50000))):
        stranger = openai.OpenAI(base_url=below, **dict(own, api_key=key))
        ask = lambda: stranger.chat.completions.create(model="any", messages=said("x"))
        fails("a key that is %s" % why, openai.AuthenticationError, "oken", ask)


def components():
    """Tests the same model as an inference component, selected by path and by name."""
    name = "conformance-components"
    variant = {
        "VariantName": "a",
        "InstanceType": "ml.m5.large",
        "InitialInstanceCount": 1,
    }
    sagemaker.create_endpoint_config(EndpointConfigName=name, ExecutionRoleArn=ROLE, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=name)
    sagemaker.create_inference_component(
        InferenceComponentName="chat-part",
        EndpointName=name,
        VariantName="a",
        Specification={
            "ModelName": ENDPOINT,
            "ComputeResourceRequirements": {"MinMemoryRequiredInMb": 256, "NumberOfCpuCoresRequired": 1},
        },
        RuntimeConfig={"CopyCount": 1},
    )
    status = lambda: sagemaker.describe_inference_component(InferenceComponentName="chat-part")
    while status()["InferenceComponentStatus"] == "Creating":
        time.sleep(POLL_SECONDS)
    url = os.environ["AWS_ENDPOINT_URL"]
    own = {"api_key": token(), "max_retries": 0, "http_client": openai.DefaultHttpxClient(trust_env=False)}
    base = "%s/endpoints/%s/inference-components/chat-part/openai/v1" % (url, name)
    chats(openai.OpenAI(base_url=base, **own), "", "of a component by its path")
    client = openai.OpenAI(base_url="%s/v1" % url, **own)
    chats(client, name + "/chat-part", "of a component by the name of its model")
    models = [model.id for model in client.models.list()]
    proven("components among the models", name + "/chat-part" in models and name not in models, str(models))
    found = client.models.retrieve(name + "/chat-part").id
    proven("a component as a model", found == name + "/chat-part", found)
    other = openai.OpenAI(base_url=base.replace("chat-part", "nobody"), **own)
    ask = lambda: other.chat.completions.create(model="", messages=said("x"))
    fails("a missing component", openai.BadRequestError, "Inference Component nobody", ask)
    sagemaker.delete_inference_component(InferenceComponentName="chat-part")


{"create": created, "chats": chat_all, "components": components, "token": lambda: print(token())}[sys.argv[1]]()
finish()
