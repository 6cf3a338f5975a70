"""Tests boto3's waiters for changes that end during one Describe call, and for longer ones.

    python waiters.py

A waiter's call gets its response when the state is stable, or after 20 s. Meanwhile a dashboard with the same key polls every second and gets
its responses at once. The exit code is 1 if a check fails.
"""

import io
import json
import threading
import time

import boto3
from archives import archive
from botocore.config import Config
from statements import BUCKET, IMAGE, ROLE, finish, proven, s3, sagemaker

NAME = "conformance-waiters"
GOING = "conformance-going"
HELD_SECONDS = 20
# The duration is longer than the delay of one call, and shorter than the delay of two.
START_SECONDS = 23
END_SECONDS = 3
TRANSIENT = ("Creating", "Deleting", "InProgress")
MODEL = """
import time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        time.sleep(%d)
    def finalize(self):
        time.sleep(%d)
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("Y", pb_utils.get_input_tensor_by_name(request, "X").as_numpy())])
            for request in requests
        ]
"""
CONFIG = """
name: "slow"
backend: "python"
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
ended = threading.Event()
seen = []


class Waiter(threading.Thread):
    """Returns a boto3 waiter with its own client, whose read time-out is slightly longer than the delay of a call."""

    def __init__(self, name, **asked):
        super().__init__()
        self.name, self.asked = name, asked
        # One entry for each call: its duration, and the state or error of its response.
        self.calls = []
        settings = Config(read_timeout=HELD_SECONDS + 5, retries={"total_max_attempts": 1})
        self.client = boto3.client("sagemaker", config=settings)
        self.client.meta.events.register("before-call.sagemaker", self.begun)
        self.client.meta.events.register("after-call.sagemaker", self.answered)

    def run(self):
        self.client.get_waiter(self.name).wait(**self.asked, WaiterConfig={"Delay": 1, "MaxAttempts": 60})

    def begun(self, **_):
        self.since = time.monotonic()

    def answered(self, parsed, **_):
        state = parsed.get("EndpointStatus") or parsed.get("TransformJobStatus") or parsed["Error"]["Code"]
        self.calls.append((time.monotonic() - self.since, state))

    def is_held(self):
        """Returns whether no call got a transient state before the delay."""
        return all(seconds >= HELD_SECONDS - 1 for seconds, state in self.calls if state in TRANSIENT)


def dashboard():
    client = boto3.client("sagemaker")
    while not ended.is_set():
        seen.append(client.describe_endpoint(EndpointName=NAME)["EndpointStatus"])
        ended.wait(1)


def deploy(name, start_seconds, end_seconds):
    key = "waiters/%s.tar.gz" % name
    files = {"slow/config.pbtxt": CONFIG, "slow/1/model.py": MODEL % (start_seconds, end_seconds)}
    s3.upload_fileobj(io.BytesIO(archive(files)), BUCKET, key)
    container = {"Image": IMAGE, "ModelDataUrl": "s3://%s/%s" % (BUCKET, key)}
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer=container)
    variant = {"VariantName": "v", "ModelName": name, "InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)


s3.create_bucket(Bucket=BUCKET)
row = {"inputs": [{"name": "X", "shape": [1], "datatype": "FP32", "data": [1]}]}
s3.put_object(Bucket=BUCKET, Key="waiters/in/row.json", Body=json.dumps(row))
deploy(GOING, 0, END_SECONDS)
sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=GOING)
deploy(NAME, START_SECONDS, 0)
sagemaker.delete_endpoint(EndpointName=GOING)
sagemaker.create_transform_job(
    TransformJobName=NAME,
    ModelName=NAME,
    TransformInput={
        "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://%s/waiters/in" % BUCKET}},
        "ContentType": "application/json",
    },
    TransformOutput={"S3OutputPath": "s3://%s/waiters/out" % BUCKET},
    TransformResources={"InstanceType": "ml.m5.large", "InstanceCount": 1},
)
waiters = [
    Waiter("endpoint_in_service", EndpointName=NAME),
    Waiter("transform_job_completed_or_stopped", TransformJobName=NAME),
    Waiter("endpoint_deleted", EndpointName=GOING),
]
watching = threading.Thread(target=dashboard)
for thread in [*waiters, watching]:
    thread.start()
for waiter in waiters:
    waiter.join()
ended.set()
watching.join()
for waiter in waiters:
    proven("calls of %s are delayed until the state is stable" % waiter.name, waiter.is_held(), waiter.calls)
in_service, completed, deleted = ([state for _, state in waiter.calls] for waiter in waiters)
proven("a longer start is waited for with a second call", in_service[0] == "Creating", in_service)
proven("the endpoint is in service", in_service[-1] == "InService", in_service)
proven("a job's waiter returns", completed[0] == "InProgress" and completed[-1] == "Completed", completed)
proven("a deleted resource gets its error", deleted[-1] == "ValidationException", deleted)
proven("a dashboard got responses meanwhile", seen.count("Creating") > 1, seen)
sagemaker.delete_endpoint(EndpointName=NAME)
sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=NAME)
finish()
