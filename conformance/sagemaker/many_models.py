"""Tests multi-model endpoints on two instances, with and without the model cache, with boto3.

python many_models.py create | again
"""

import json
import sys
import time

import boto3
from archives import archive
from statements import BUCKET, IMAGE, ROLE, answers, finish, proven, refused, runtime, s3, sagemaker

KEPT, UNKEPT = "conformance-kept", "conformance-unkept"
TARGETS = ["%d.tar.gz" % index for index in range(6)]
MODEL = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "IN").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", each + np.float32(%d))]) for each in inputs]
"""
CONFIG = """
name: "model"
backend: "python"
input [ { name: "IN" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
cloudwatch = boto3.client("cloudwatch")


def ask(endpoint, target):
    body = json.dumps({"inputs": [{"name": "IN", "shape": [1], "datatype": "FP32", "data": [10]}]})
    reply = runtime.invoke_endpoint(
        EndpointName=endpoint, TargetModel=target, ContentType="application/json", Body=body
    )
    return json.loads(reply["Body"].read())["outputs"][0]["data"][0]


def ask_all(endpoint):
    return [ask(endpoint, target) for target in TARGETS]


def put(target, adds):
    files = {"model/config.pbtxt": CONFIG, "model/1/model.py": MODEL % adds}
    s3.put_object(Bucket=BUCKET, Key="many-models/" + target, Body=archive(files))


def deploy(name, count=2, instance_type="ml.m5.large", **container):
    url = "s3://%s/many-models/" % BUCKET
    primary = dict({"Image": IMAGE, "Mode": "MultiModel", "ModelDataUrl": url}, **container)
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer=primary)
    variant = {"VariantName": "v", "ModelName": name, "InstanceType": instance_type, "InitialInstanceCount": count}
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)


def counted(endpoint, metric, statistic="SampleCount"):
    now = time.time()
    points = cloudwatch.get_metric_statistics(
        Namespace="AWS/SageMaker",
        MetricName=metric,
        Dimensions=[{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": "v"}],
        StartTime=now - 3600,
        EndTime=now + 120,
        Period=60,
        Statistics=[statistic],
    )["Datapoints"]
    return sum(point[statistic] for point in points)


def create():
    s3.create_bucket(Bucket=BUCKET)
    for index, target in enumerate(TARGETS):
        put(target, index)
    deploy(KEPT)
    deploy(UNKEPT, MultiModelConfig={"ModelCacheSetting": "Disabled"})
    for name in (KEPT, UNKEPT):
        sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=name)
    expected = [10.0 + index for index in range(6)]
    for _ in range(2):
        for name in (KEPT, UNKEPT):
            answers("each model of %s responds" % name, lambda name=name: ask_all(name), expected)
    answers("with the model cache each model is loaded once", lambda: counted(KEPT, "ModelLoadingTime"), 6)
    answers("later requests are cache hits", lambda: counted(KEPT, "ModelCacheHit", "Sum"), 6)
    answers("without the model cache each request loads its model", lambda: counted(UNKEPT, "ModelLoadingTime"), 12)
    answers("no request is a cache hit", lambda: counted(UNKEPT, "ModelCacheHit", "Sum"), 0)
    put(TARGETS[0], 100)
    for name in (KEPT, UNKEPT):
        answers("%s serves the replaced archive" % name, lambda name=name: ask(name, TARGETS[0]), 110.0)
    code = "ResourceLimitExceeded"
    promise = {"GALATEA_MODEL_MEMORY_BYTES": str(2**40)}
    large = lambda: deploy("conformance-large", 40, "ml.m5.24xlarge", Environment=promise)
    sagemaker.delete_endpoint(EndpointName=UNKEPT)
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=UNKEPT)
    refused("an endpoint without memory for it", code, "'Memory of the nodes' is .* MiB are missing", large)


def again():
    downloads, loads = (counted(KEPT, metric) for metric in ("ModelDownloadingTime", "ModelLoadingTime"))
    answers("each model responds after kill -9", lambda: ask_all(KEPT), [110.0, 11.0, 12.0, 13.0, 14.0, 15.0])
    answers("no model is loaded again", lambda: counted(KEPT, "ModelLoadingTime") - loads, 0)
    answers("no model is downloaded again", lambda: counted(KEPT, "ModelDownloadingTime") - downloads, 0)
    models = sagemaker.describe_endpoint(EndpointName=KEPT)["ProductionVariants"][0]["CurrentInstanceCount"]
    proven("the number of instances is unchanged", models == 2, models)
    sagemaker.delete_endpoint(EndpointName=KEPT)
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=KEPT)


{"create": create, "again": again}[sys.argv[1]]()
finish()
