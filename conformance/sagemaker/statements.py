"""Clients and checks for the other scripts.

Settings come from the environment that `galatea env` prints. Each check prints a line; after a failed check the others still run,
and the exit code is 1.
"""

import re
import sys
import time

import boto3
from botocore.exceptions import ClientError

BUCKET = "conformance-models"
IMAGE = "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3"
# Replaces the SDK's polling interval of 30 s, which passes before the first poll.
POLL_SECONDS = 0.1

s3 = boto3.client("s3")
sagemaker = boto3.client("sagemaker")
runtime = boto3.client("sagemaker-runtime")
account = boto3.client("sts").get_caller_identity()["Account"]
ROLE = "arn:aws:iam::%s:role/AmazonSageMaker-DefaultRole" % account
failed = []


def proven(statement, condition, detail=""):
    if not condition:
        failed.append(statement)
    print("%s  %s  %s" % ("ok" if condition else "FAILED", statement, detail), flush=True)
    return condition


def answers(statement, call, expected):
    """Checks the result of `call`; an error fails the check, not the script."""
    try:
        found = call()
    except ClientError as error:
        found = str(error)
    proven(statement, found == expected, "" if found == expected else found)


def eventually(condition):
    """Returns the result of `condition` once it is true, or after a minute: some effects of a response are visible only later."""
    end = time.monotonic() + 60
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
    return found


def refused(statement, code, pattern, call):
    try:
        call()
    except ClientError as error:
        found = error.response["Error"]
        matches = found["Code"] == code and re.search(pattern, found["Message"], re.S)
        proven(statement, matches, "" if matches else str(found))
        return error.response
    proven(statement, False, "the call succeeded")
    return {}


def finish():
    sys.exit(1 if failed else 0)
