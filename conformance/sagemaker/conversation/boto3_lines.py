"""Runs boto3 for another program: each line of the input is a call, and each line of the output is its result."""

import boto3
from botocore import xform_name
from botocore.exceptions import ClientError, EventStreamError, WaiterError
from lines import failure, serve

clients = {}


def client(service):
    if service not in clients:
        clients[service] = boto3.client(service)
    return clients[service]


def call(service, operation, given):
    try:
        return getattr(client(service), xform_name(operation))(**given)
    except (ClientError, EventStreamError) as error:
        found = error.response["Error"]
        return failure(found["Code"], found["Message"], type(error).__name__)


def wait(service, name, given):
    try:
        client(service).get_waiter(xform_name(name)).wait(WaiterConfig={"Delay": 1, "MaxAttempts": 120}, **given)
        return {}
    except WaiterError as error:
        return failure("WaiterError", str(error))


serve(call, wait)
