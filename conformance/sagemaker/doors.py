"""Checks with boto3 an endpoint that galatea's own commands stop and start.

python doors.py deploy|stopped|clean
"""

import json
import sys

from archives import TWICE_BODY, twice
from deployments import deployed, removed
from statements import answers, finish, refused, runtime, sagemaker

NAME = "doors"


def invoke():
    reply = runtime.invoke_endpoint(EndpointName=NAME, ContentType="application/json", Body=TWICE_BODY)
    return json.loads(reply["Body"].read())["outputs"][0]["data"]


def status():
    return sagemaker.describe_endpoint(EndpointName=NAME)["EndpointStatus"]


def deploy():
    deployed(NAME, twice, {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "twice"})
    answers("an endpoint responds", invoke, [2.0, 4.0])


def stopped():
    answers("a stopped endpoint is OutOfService", status, "OutOfService")
    refused(
        "an invocation of a stopped endpoint is an error",
        "ValidationError",
        "^Endpoint doors of account .* is stopped",
        invoke,
    )
    listed = sagemaker.list_endpoints(StatusEquals="OutOfService")["Endpoints"]
    answers("ListEndpoints finds it by that status", lambda: [each["EndpointName"] for each in listed], [NAME])


def clean():
    answers("a restarted endpoint responds as before", invoke, [2.0, 4.0])
    removed(NAME)


{"deploy": deploy, "stopped": stopped, "clean": clean}[sys.argv[1]]()
finish()
