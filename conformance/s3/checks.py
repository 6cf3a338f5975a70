"""Shared code of the check files: clients for the gateway at argv[1], and a list that prints one JSON line per
check.
"""

import json
import os
import sys
import traceback

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

URL, FOLDER = sys.argv[1], sys.argv[2]
MIB = 2**20


def client(secret="secret", **config):
    return boto3.client(
        "s3",
        endpoint_url=URL,
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key=secret,
        region_name="us-east-1",
        config=Config(retries={"total_max_attempts": 1}, **config),
    )


s3 = client()
checks = []


def check(function):
    checks.append(function)
    return function


def refused(code, call, status=None):
    try:
        call()
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, error.response
        if status is not None:
            assert error.response["ResponseMetadata"]["HTTPStatusCode"] == status, error.response
        return error.response
    raise AssertionError("not refused with " + code)


def put(key, body=b"x", **more):
    return s3.put_object(Bucket="bkt", Key=key, Body=body, **more)


def got(key, **more):
    return s3.get_object(Bucket="bkt", Key=key, **more)["Body"].read()


def path(name):
    return os.path.join(FOLDER, name)


def run():
    for function in checks:
        try:
            function()
            print(json.dumps({"check": function.__name__, "ok": True}), flush=True)
        except Exception:
            print(json.dumps({"check": function.__name__, "ok": False, "error": traceback.format_exc()}), flush=True)
