"""What the workflows share: clients, and statements that are printed as they are proven.

Everything comes from the environment that `galatea env` prints. One line per statement; when one is not true the rest is still tried,
and the exit code is 1.
"""

import re
import sys
import time

import boto3
from botocore.exceptions import ClientError

BUCKET = "conformance-models"
IMAGE = "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3"
# What the SDK's deploys wait with; their own thirty seconds pass before they look for the first time.
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
    """`call` answers this; an error is the statement's failure, not the script's."""
    try:
        found = call()
    except ClientError as error:
        found = str(error)
    proven(statement, found == expected, "" if found == expected else found)


def eventually(condition):
    """What `condition` answers once that is true, or at the end of a minute: for what is told of an answer after the answer."""
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
    proven(statement, False, "it was answered")
    return {}


def finish():
    sys.exit(1 if failed else 0)
