"""Tests serverless variants with boto3.

python serverless.py create | again
"""

import io
import json
import sys
import threading
import time

import boto3
from archives import archive
from botocore.config import Config
from statements import BUCKET, IMAGE, ROLE, answers, eventually, finish, proven, refused, runtime, s3, sagemaker

ENDPOINT = "conformance-serverless"
MODEL = """
import time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            seconds = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
            time.sleep(float(seconds.max()))
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", seconds + 1)]))
        return answers
"""
CONFIG = """
name: "model"
backend: "python"
max_batch_size: 1
input [ { name: "IN" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] } ]
instance_group [ { count: 2 } ]
"""
at_once = boto3.client("sagemaker-runtime", config=Config(retries={"total_max_attempts": 1}))
autoscaling = boto3.client("application-autoscaling")
cloudwatch = boto3.client("cloudwatch")


def ask(seconds=0.0, client=runtime):
    body = json.dumps({"inputs": [{"name": "IN", "shape": [1, 1], "datatype": "FP32", "data": [seconds]}]})
    reply = client.invoke_endpoint(EndpointName=ENDPOINT, ContentType="application/json", Body=body)
    return json.loads(reply["Body"].read())["outputs"][0]["data"][0]


def ask_until(told, seconds):
    """Invokes repeatedly, whatever the result is."""
    while not told.is_set():
        try:
            ask(seconds, at_once)
        except at_once.exceptions.ClientError:
            time.sleep(0.01)


def configure(name, model="serverless", **config):
    return sagemaker.create_endpoint_config(
        EndpointConfigName=name,
        ProductionVariants=[{"VariantName": "v", "ModelName": model, "ServerlessConfig": config}],
    )


def variant():
    return sagemaker.describe_endpoint(EndpointName=ENDPOINT)["ProductionVariants"][0]


def sizes():
    found = variant()
    return found["CurrentInstanceCount"], found["CurrentServerlessConfig"]


def refusals():
    code = "ValidationException"
    text = "has to be one of 1024, 2048, 3072, 4096, 5120 and 6144, not 1500"
    refused(
        "an unsupported memory size is rejected",
        code,
        text,
        lambda: configure("odd", MemorySizeInMB=1500, MaxConcurrency=1),
    )
    text = "less than or equal to 200"
    refused(
        "a too high MaxConcurrency is rejected",
        code,
        text,
        lambda: configure("many", MemorySizeInMB=1024, MaxConcurrency=201),
    )
    more = {"MemorySizeInMB": 1024, "MaxConcurrency": 1, "ProvisionedConcurrency": 2}
    refused(
        "ProvisionedConcurrency above MaxConcurrency is rejected",
        code,
        "cannot be more than its MaxConcurrency",
        lambda: configure("kept", **more),
    )
    container = {"Image": IMAGE, "ModelDataUrl": "s3://%s/many/" % BUCKET, "Mode": "MultiModel"}
    sagemaker.create_model(ModelName="many-models", ExecutionRoleArn=ROLE, PrimaryContainer=container)
    small = {"MemorySizeInMB": 1024, "MaxConcurrency": 1}
    text = "does not support multi-model endpoints"
    refused("a multi-model container is rejected", code, text, lambda: configure("many", model="many-models", **small))
    containers = [dict(container, Mode="SingleModel", ContainerHostname=name) for name in ("a", "b")]
    sagemaker.create_model(ModelName="pipeline", ExecutionRoleArn=ROLE, Containers=containers)
    text = "does not support inference pipelines"
    refused("a pipeline", code, text, lambda: configure("many", model="pipeline", **small))
    both = {"VariantName": "v", "ModelName": "serverless", "InstanceType": "ml.m5.large", "ServerlessConfig": small}
    call = lambda: sagemaker.create_endpoint_config(EndpointConfigName="both", ProductionVariants=[both])
    refused("an InstanceType is rejected", code, r'^InstanceType cannot be given for variant "v"', call)
    one = {"VariantName": "v", "ModelName": "serverless", "ServerlessConfig": small}
    call = lambda: sagemaker.create_endpoint_config(
        EndpointConfigName="two", ProductionVariants=[one, dict(one, VariantName="w")]
    )
    refused("a second variant is rejected", code, "can have no other production variant", call)


def scaling():
    """Scales provisioned concurrency like instances."""
    target = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": "endpoint/%s/variant/v" % ENDPOINT,
        "ScalableDimension": "sagemaker:variant:DesiredProvisionedConcurrency",
    }
    code = "ValidationException"
    register = lambda least, **more: autoscaling.register_scalable_target(
        MinCapacity=least, MaxCapacity=4, **{**target, **more}
    )
    refused(
        "provisioned concurrency cannot be scaled to zero",
        code,
        "DesiredProvisionedConcurrency must be at least 1; it is 0",
        lambda: register(0),
    )
    call = lambda: register(1, ScalableDimension="sagemaker:variant:DesiredInstanceCount")
    refused(
        "a serverless variant has no instances to scale",
        code,
        "^There is no variant v of an endpoint .* with instances",
        call,
    )
    register(2)
    while variant()["CurrentServerlessConfig"].get("ProvisionedConcurrency") != 2:
        time.sleep(0.1)
    # DescribeScalingActivities lists the activity when the endpoint is stable.
    describe = lambda: autoscaling.describe_scaling_activities(**target)["ScalingActivities"]
    while [each["StatusCode"] for each in describe()] != ["Successful"]:
        time.sleep(0.1)
    answers(
        "provisioned concurrency is scaled to its minimum",
        lambda: describe()[0]["Description"],
        "Setting desired provisioned concurrency to 2.",
    )
    policy = autoscaling.put_scaling_policy(
        PolicyName="tracked",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "PredefinedMetricSpecification": {
                "PredefinedMetricType": "SageMakerVariantProvisionedConcurrencyUtilization"
            },
            "TargetValue": 0.9,
        },
        **target,
    )
    found = cloudwatch.describe_alarms(AlarmNames=[each["AlarmName"] for each in policy["Alarms"]])["MetricAlarms"]
    watched = {each["MetricName"] for each in found}
    proven("a policy tracks the utilization", watched == {"ServerlessProvisionedConcurrencyUtilization"}, watched)
    autoscaling.deregister_scalable_target(**target)


def create():
    s3.create_bucket(Bucket=BUCKET)
    files = {"model/config.pbtxt": CONFIG, "model/1/model.py": MODEL}
    s3.upload_fileobj(io.BytesIO(archive(files)), BUCKET, "serverless.tar.gz")
    container = {"Image": IMAGE, "ModelDataUrl": "s3://%s/serverless.tar.gz" % BUCKET}
    sagemaker.create_model(ModelName="serverless", ExecutionRoleArn=ROLE, PrimaryContainer=container)
    refusals()
    configure("small", MemorySizeInMB=2048, MaxConcurrency=2)
    described = sagemaker.describe_endpoint_config(EndpointConfigName="small")["ProductionVariants"][0]
    asked = {"MemorySizeInMB": 2048, "MaxConcurrency": 2}
    found = (described["ServerlessConfig"], "InstanceType" in described)
    proven("DescribeEndpointConfig returns the configuration", found == (asked, False), described)
    sagemaker.create_endpoint(EndpointName=ENDPOINT, EndpointConfigName="small")
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=ENDPOINT)
    answers("no container runs without requests", sizes, (0, {"MemorySizeInMB": 2048, "MaxConcurrency": 2}))
    answers("the first request starts the container", ask, 1.0)
    told = threading.Event()
    asking = [threading.Thread(target=ask_until, args=(told, 3.0)) for _ in range(2)]
    for thread in asking:
        thread.start()

    def ask_beside_them():
        end = time.monotonic() + 60
        while time.monotonic() < end:
            ask(client=at_once)

    reply = refused("a third concurrent request is rejected", "ThrottlingException", "^Rate exceeded", ask_beside_them)
    told.set()
    for thread in asking:
        thread.join()
    proven("the rejection has its status", reply["ResponseMetadata"]["HTTPStatusCode"] == 429)
    more = {"VariantName": "v", "ServerlessUpdateConfig": {"MaxConcurrency": 5, "ProvisionedConcurrency": 1}}
    sagemaker.update_endpoint_weights_and_capacities(EndpointName=ENDPOINT, DesiredWeightsAndCapacities=[more])
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=ENDPOINT)
    kept = {"MemorySizeInMB": 2048, "MaxConcurrency": 5, "ProvisionedConcurrency": 1}
    answers("an update raises the concurrency and keeps it provisioned", sizes, (0, kept))
    count = {"VariantName": "v", "DesiredInstanceCount": 2}
    call = lambda: sagemaker.update_endpoint_weights_and_capacities(
        EndpointName=ENDPOINT, DesiredWeightsAndCapacities=[count]
    )
    refused("an update of the instance count is rejected", "ValidationException", "has no DesiredInstanceCount", call)
    scaling()
    dimensions = [{"Name": "EndpointName", "Value": ENDPOINT}, {"Name": "VariantName", "Value": "v"}]
    expected = {"ModelSetupTime", "OverheadLatency", "MemoryUtilization", "ServerlessConcurrentExecutionsUtilization"}

    def missing():
        return expected - {each["MetricName"] for each in cloudwatch.list_metrics(Dimensions=dimensions)["Metrics"]}

    # The usage of instances is sampled every 20 s.
    eventually(lambda: not missing())
    answers("the variant has its metrics", missing, set())


def again():
    answers("the endpoint responds after kill -9", ask, 1.0)
    configure("sleeping", MemorySizeInMB=1024, MaxConcurrency=3)
    variants = [
        {"VariantName": "v", "ModelName": "serverless", "InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
    ]
    sagemaker.create_endpoint_config(EndpointConfigName="instances", ProductionVariants=variants)
    for name in ("instances", "sleeping"):
        sagemaker.update_endpoint(EndpointName=ENDPOINT, EndpointConfigName=name)
        sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=ENDPOINT)
        answers("updated to %s" % name, ask, 1.0)
    answers("the endpoint is serverless again", sizes, (0, {"MemorySizeInMB": 1024, "MaxConcurrency": 3}))
    sagemaker.delete_endpoint(EndpointName=ENDPOINT)
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=ENDPOINT)


{"create": create, "again": again}[sys.argv[1]]()
finish()
