"""Uses stateful sessions with boto3: a script stores them, on two instances.

python script_sessions.py
"""

import io
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sagemaker"))
from archives import archive
from statements import BUCKET, ROLE, finish, proven, refused, runtime, s3, sagemaker

ENDPOINT = "conformance-sessions"
IMAGE = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-scikit-learn:1.2-1-cpu-py3"
SCRIPT = """
import datetime
import json
import uuid

NAME = "X-Amzn-SageMaker-%s-Session-Id"
sessions = {}

def model_fn(directory):
    return None

def transform_fn(model, data, content_type, accept, context):
    session = context.get_request_header(0, "X-Amzn-SageMaker-Session-Id")
    asked = json.loads(data)
    if session == "NEW_SESSION":
        session = str(uuid.uuid4())
        sessions[session] = []
        ends = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=asked.get("seconds", 600))
        context.set_response_header(0, NAME % "New", session + ends.strftime("; Expires=%Y-%m-%dT%H:%M:%SZ"))
    said = sessions[session]
    said.append(asked["word"])
    if asked["word"] == "bye":
        del sessions[session]
        context.set_response_header(0, NAME % "Closed", session)
    for word in said:
        yield word + " "
"""


def created():
    s3.create_bucket(Bucket=BUCKET)
    s3.upload_fileobj(io.BytesIO(archive({"code/inference.py": SCRIPT})), BUCKET, "sessions.tar.gz")
    container = {
        "Image": IMAGE,
        "ModelDataUrl": "s3://%s/sessions.tar.gz" % BUCKET,
        # The state of a session is in one process.
        "Environment": {"SAGEMAKER_PROGRAM": "inference.py", "SAGEMAKER_MODEL_SERVER_WORKERS": "1"},
    }
    sagemaker.create_model(ModelName=ENDPOINT, ExecutionRoleArn=ROLE, PrimaryContainer=container)
    variant = {"VariantName": "a", "ModelName": ENDPOINT, "InstanceType": "ml.m5.large", "InitialInstanceCount": 2}
    sagemaker.create_endpoint_config(EndpointConfigName=ENDPOINT, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=ENDPOINT, EndpointConfigName=ENDPOINT)
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=ENDPOINT)


def ask(session, word, **more):
    body = json.dumps(dict(more, word=word))
    return runtime.invoke_endpoint(EndpointName=ENDPOINT, ContentType="application/json", Body=body, SessionId=session)


def text(reply):
    return reply["Body"].read().decode()


def opened(word, **more):
    """Opens a session and returns its id."""
    told = ask("NEW_SESSION", word, **more).get("NewSessionId", "")
    shape = r"[0-9a-f-]{36}; Expires=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    proven("a session is opened with its id and its expiry time", re.fullmatch(shape, told), told)
    return told.split(";")[0]


def main():
    created()
    # There are two instances, and only the one that opened a session knows it.
    sessions = [opened("hello%d" % number) for number in range(4)]
    for number, session in enumerate(sessions):
        found = [text(ask(session, word)) for word in ("one", "two")]
        expected = ["hello%d one " % number, "hello%d one two " % number]
        proven("requests of a session see its state", found == expected, str(found))
    reply = runtime.invoke_endpoint_with_response_stream(
        EndpointName=ENDPOINT,
        ContentType="application/json",
        Body=json.dumps({"word": "three"}),
        SessionId=sessions[0],
    )
    found = b"".join(event["PayloadPart"]["Bytes"] for event in reply["Body"]).decode()
    proven("streams of a session see its state", found == "hello0 one two three ", found)
    closed = ask(sessions[0], "bye")
    proven("the model closes the session", closed.get("ClosedSessionId") == sessions[0], str(closed))
    gone = r"Session %s not found for Request of endpoint %s\."
    refused(
        "a closed session is rejected", "ValidationError", gone % (sessions[0], ENDPOINT), lambda: ask(sessions[0], "x")
    )
    over = opened("hello", seconds=-1)
    refused("an expired session is rejected", "ValidationError", gone % (over, ENDPOINT), lambda: ask(over, "x"))
    refused("an unknown session is rejected", "ValidationError", gone % ("s1", ENDPOINT), lambda: ask("s1", "x"))
    refused(
        "a stream cannot open a session",
        "ValidationError",
        "at 'sessionId' failed to satisfy constraint",
        lambda: runtime.invoke_endpoint_with_response_stream(
            EndpointName=ENDPOINT, Body=b"{}", SessionId="NEW_SESSION"
        ),
    )
    sagemaker.delete_endpoint(EndpointName=ENDPOINT)
    finish()


main()
