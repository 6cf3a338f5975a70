"""boto3's waiters for what takes longer than boto3 reads without a byte.

    python waiters.py

The waiters are boto3's own, with its sleeps of 30 and 60 seconds between questions: one that had to sleep would be told late. A dashboard
with the same key asks every second meanwhile. The exit code is 1 where a statement is not true.
"""

import io
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import boto3
from archives import archive
from botocore.config import Config
from statements import BUCKET, IMAGE, ROLE, finish, proven, s3, sagemaker

NAME = "conformance-waiters"
GOING = "conformance-going"
# Longer than what boto3 reads without a byte here, which is longer than the platform ever keeps silent.
START_SECONDS = 19
END_SECONDS = 19
READ_SECONDS = 17
LATE_SECONDS = 10
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
patient = boto3.client("sagemaker", config=Config(read_timeout=READ_SECONDS, retries={"total_max_attempts": 1}))
ended = threading.Event()
seen = []
lateness = {}


def dashboard():
    client = boto3.client("sagemaker")
    while not ended.is_set():
        seen.append(client.describe_endpoint(EndpointName=NAME)["EndpointStatus"])
        ended.wait(1)


def wait_for_endpoint():
    patient.get_waiter("endpoint_in_service").wait(EndpointName=NAME)
    told = time.time()
    found = sagemaker.describe_endpoint(EndpointName=NAME)
    lateness["endpoint_in_service"] = told - found["LastModifiedTime"].timestamp()


def wait_for_job():
    patient.get_waiter("transform_job_completed_or_stopped").wait(TransformJobName=NAME)
    told = time.time()
    found = sagemaker.describe_transform_job(TransformJobName=NAME)
    lateness["transform_job_completed_or_stopped"] = told - found["TransformEndTime"].timestamp()


def wait_for_deletion():
    patient.get_waiter("endpoint_deleted").wait(EndpointName=GOING)
    lateness["endpoint_deleted"] = time.time() - gone.result()


def time_of_deletion():
    # Nobody holds a list.
    while sagemaker.list_endpoints(NameContains=GOING)["Endpoints"]:
        time.sleep(0.5)
    return time.time()


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
began = time.time()
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
gone = ThreadPoolExecutor(1).submit(time_of_deletion)
waiting = [threading.Thread(target=wait) for wait in (wait_for_endpoint, wait_for_job, wait_for_deletion)]
watching = threading.Thread(target=dashboard)
for thread in [*waiting, watching]:
    thread.start()
for thread in waiting:
    thread.join()
ended.set()
watching.join()
proven("the start took longer than boto3 reads", time.time() - began > READ_SECONDS)
proven("the deletion took longer than boto3 reads", gone.result() - began > READ_SECONDS, gone.result() - began)
for name in ("endpoint_in_service", "transform_job_completed_or_stopped", "endpoint_deleted"):
    late = lateness.get(name)
    proven("%s was told when it was so" % name, late is not None and late < LATE_SECONDS, late)
proven("a dashboard was told meanwhile", seen.count("Creating") > 1, seen)
sagemaker.delete_endpoint(EndpointName=NAME)
sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=NAME)
finish()
