"""Tests inference pipelines and containers in Direct mode with boto3 and the sagemaker SDK v2.

    python pipelines.py boto3|sdk

Each container doubles a number, adds its own and passes the sum on. The response of a container is the request of the next one, by the generate
extension of Triton: a tensor by its name.
"""

import json
import re
import sys
import time

import boto3
from archives import archive
from statements import IMAGE, POLL_SECONDS, ROLE, answers, finish, proven, refused, runtime, s3, sagemaker

BUCKET = "conformance-pipelines-" + sys.argv[1]
CONFIG = """
backend: "python"
max_batch_size: 0
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
PROGRAM = """
import os
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            if x[0] == float(os.environ.get("REFUSES", "nan")):
                raise ValueError("this number is refused")
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("X", x * 2 + np.float32(os.environ["ADDS"]))]))
        return responses
"""
NAMES = ("scale", "shift", "round")
ENVIRONMENT = {"SAGEMAKER_TRITON_INFERENCE_TYPE": "generate"}
TYPE = "application/json"


def put_model():
    files = {"sum/config.pbtxt": CONFIG, "sum/1/model.py": PROGRAM}
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="sum.tar.gz", Body=archive(files))
    return "s3://%s/sum.tar.gz" % BUCKET


def containers(url, names=NAMES):
    return [
        {
            "ContainerHostname": name,
            "Image": IMAGE,
            "ModelDataUrl": url,
            "Environment": dict(ENVIRONMENT, ADDS=str(index + 1), REFUSES="40" if index == 1 else "-1"),
        }
        for index, name in enumerate(names)
    ]


def create(name, **model):
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE, **model)
    variant = {
        "InstanceType": "ml.m5.xlarge",
        "InitialInstanceCount": 1,
        "ModelName": name,
        "VariantName": "AllTraffic",
    }
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=name)


def ask(endpoint, number, **more):
    reply = runtime.invoke_endpoint(
        EndpointName=endpoint, ContentType=TYPE, Accept=TYPE, Body=json.dumps({"X": [number]}), **more
    )
    return json.loads(reply["Body"].read())["X"]


def with_boto3():
    url = put_model()
    create("serial", Containers=containers(url))
    # ((5 * 2 + 1) * 2 + 2) * 2 + 3
    answers("a request passes through the containers in their order", lambda: ask("serial", 5), 51)
    described = sagemaker.describe_model(ModelName="serial")
    proven("DescribeModel returns the containers unchanged", described["Containers"] == containers(url))
    proven("DescribeModel returns no PrimaryContainer", "PrimaryContainer" not in described)
    images = sagemaker.describe_endpoint(EndpointName="serial")["ProductionVariants"][0]["DeployedImages"]
    proven(
        "DescribeEndpoint returns the image of each container",
        [image["SpecifiedImage"] for image in images] == [IMAGE] * 3,
    )
    answer = refused(
        "the error names the container that failed, with its logs",
        "ModelError",
        r'^Received client error \(400\) from shift with message ".*this number is refused.*" *\. See ',
        # 19.5 * 2 + 1
        lambda: ask("serial", 19.5),
    )
    proven(
        "LogStreamArn is the stream of the container",
        re.search(r":AllTraffic/i-[0-9a-f]+/shift$", answer.get("LogStreamArn", "")),
    )
    refused(
        "a pipeline rejects a target container",
        "ValidationError",
        "does not support target container hostname header",
        lambda: ask("serial", 5, TargetContainerHostname="shift"),
    )
    refused(
        "a pipeline rejects a target model",
        "ValidationError",
        "^Endpoint serial is not a multi-model endpoint and does not support target model header.$",
        lambda: ask("serial", 5, TargetModel="sum.tar.gz"),
    )
    direct(url)
    models(url)
    metrics()
    logs()


def direct(url):
    execution = {"Mode": "Direct"}
    create("direct", Containers=containers(url), InferenceExecutionConfig=execution)
    described = sagemaker.describe_model(ModelName="direct")
    proven("DescribeModel returns the mode", described["InferenceExecutionConfig"] == execution)
    for index, name in enumerate(NAMES):
        call = lambda name=name: ask("direct", 5, TargetContainerHostname=name)
        answers("the container %s is invoked alone" % name, call, 11 + index)
    refused(
        "a request must name a container", "ValidationError", "requires a target container", lambda: ask("direct", 5)
    )
    nobody = lambda: ask("direct", 5, TargetContainerHostname="nobody")
    refused("a missing container is an error", "ValidationError", "^Container nobody not found", nobody)


def models(url):
    def create_model(**model):
        return lambda: sagemaker.create_model(ModelName="refused", ExecutionRoleArn=ROLE, **model)

    three = containers(url)
    unnamed = {"Image": IMAGE, "ModelDataUrl": url}
    many = dict(three[0], Mode="MultiModel", ModelDataUrl="s3://%s/many/" % BUCKET)
    other = dict(three[1], Mode="MultiModel", ModelDataUrl="s3://%s/more/" % BUCKET)
    code = "ValidationException"
    refused("some names and some not", code, "ContainerHostname must be", create_model(Containers=[three[0], unnamed]))
    refused("a name twice", code, '"scale" was non-unique', create_model(Containers=[three[0], three[0]]))
    sixteen = create_model(Containers=[unnamed] * 16)
    refused("sixteen containers", code, "Member must have length less than or equal to 15", sixteen)
    text = "^More than one container in MultiModel mode is not supported with inference pipeline.$"
    refused("two multi-model containers in a pipeline", code, text, create_model(Containers=[many, other]))
    mode = {"Mode": "Direct"}
    without = create_model(Containers=[unnamed, unnamed], InferenceExecutionConfig=mode)
    refused("containers without names in Direct mode", code, "ContainerHostname must be given", without)
    primary = create_model(PrimaryContainer=unnamed, InferenceExecutionConfig=mode)
    refused("a PrimaryContainer in Direct mode", code, "needs Containers", primary)
    both = create_model(PrimaryContainer=unnamed, Containers=three)
    refused("a PrimaryContainer together with Containers", code, "exactly one", both)


def metrics():
    cloudwatch = boto3.client("cloudwatch")
    now = time.time()
    for endpoint, calls in (("serial", {"scale": 2, "shift": 2, "round": 1}), ("direct", dict.fromkeys(NAMES, 1))):
        for container, count in calls.items():
            for metric, unit in (("Invocations", "None"), ("ContainerLatency", "Microseconds")):
                dimensions = {"EndpointName": endpoint, "VariantName": "AllTraffic", "ContainerName": container}
                points = cloudwatch.get_metric_statistics(
                    Namespace="AWS/SageMaker",
                    MetricName=metric,
                    Dimensions=[{"Name": name, "Value": value} for name, value in dimensions.items()],
                    StartTime=now - 3600,
                    EndTime=now + 120,
                    Period=3600,
                    Statistics=["SampleCount"],
                )["Datapoints"]
                found = (sum(point["SampleCount"] for point in points), {point["Unit"] for point in points})
                proven("%s of %s in %s" % (metric, container, endpoint), found == (count, {unit}), str(found))


def logs():
    group = "/aws/sagemaker/Endpoints/serial"
    streams = boto3.client("logs").describe_log_streams(logGroupName=group)["logStreams"]
    found = {stream["logStreamName"].split("/")[-1] for stream in streams}
    proven("a log stream for each container", found == set(NAMES), str(found))


def transformed(pipeline):
    s3.put_object(Bucket=BUCKET, Key="in/numbers.jsonl", Body="\n".join(json.dumps({"X": [at]}) for at in range(20)))
    transformer = pipeline.transformer(
        instance_count=1,
        instance_type="ml.m5.xlarge",
        strategy="SingleRecord",
        assemble_with="Line",
        max_concurrent_transforms=3,
        output_path="s3://%s/out" % BUCKET,
    )
    transformer.transform(
        "s3://%s/in/" % BUCKET, content_type=TYPE, split_type="Line", job_name="sdk-pipeline", wait=False
    )
    sagemaker.get_waiter("transform_job_completed_or_stopped").wait(TransformJobName="sdk-pipeline")
    text = s3.get_object(Bucket=BUCKET, Key="out/numbers.jsonl.out")["Body"].read().decode()
    found = [json.loads(line)["X"] for line in text.splitlines()]
    proven("PipelineModel.transformer", found == [(at * 2 + 1) * 2 + 2 for at in range(20)], str(found))


def with_sdk():
    import sagemaker as sdk_module
    from sagemaker.model import Model
    from sagemaker.pipeline import PipelineModel
    from sagemaker.predictor import Predictor

    url = put_model()
    session = sdk_module.Session()
    steps = [
        Model(image_uri=IMAGE, model_data=url, role=ROLE, env=dict(ENVIRONMENT, ADDS=adds), sagemaker_session=session)
        for adds in ("1", "2")
    ]
    pipeline = PipelineModel(
        models=steps, role=ROLE, name="sdk-pipeline", predictor_cls=Predictor, sagemaker_session=session
    )
    predictor = pipeline.deploy(
        initial_instance_count=1, instance_type="ml.m5.xlarge", endpoint_name="sdk-pipeline", wait=False
    )
    session.wait_for_endpoint("sdk-pipeline", poll=POLL_SECONDS)
    answer = json.loads(predictor.predict(json.dumps({"X": [5]}), initial_args={"ContentType": TYPE}))
    proven("PipelineModel deploys and predicts", answer["X"] == 24, str(answer))
    transformed(pipeline)
    predictor.delete_model()
    predictor.delete_endpoint()
    again = "Could not find"
    refused(
        "the models are deleted",
        "ValidationException",
        again,
        lambda: sagemaker.describe_model(ModelName="sdk-pipeline"),
    )


{"boto3": with_boto3, "sdk": with_sdk}[sys.argv[1]]()
finish()
