"""Runs the AWS CLI against a platform: from creating a bucket to reading the logs, each step as a shell command.

Settings come from the environment that `galatea env --proxy` prints. The first unexpected result ends the script.
"""

import json
import os
import subprocess
import sys
import tempfile

from archives import archive, doubling

IMAGE = "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3"
ROLE = "arn:aws:iam::000000000000:role/AmazonSageMaker-DefaultRole"
VARIANT = "VariantName=AllTraffic,ModelName=cli,InitialInstanceCount=1,InstanceType=ml.g4dn.xlarge"
TARGET = ("--service-namespace", "sagemaker", "--scalable-dimension", "sagemaker:variant:DesiredInstanceCount")
RESOURCE = ("--resource-id", "endpoint/cli/variant/AllTraffic")


def aws(*words, code=0):
    """Returns the output of `aws ...`, or its error output if it fails."""
    ended = subprocess.run([sys.executable, "-m", "awscli", *words], capture_output=True, text=True, timeout=120)
    assert ended.returncode == code, "aws %s: %d %s%s" % (" ".join(words), ended.returncode, ended.stdout, ended.stderr)
    print("ok  aws %s" % " ".join(words[:2]), flush=True)
    return ended.stdout if code == 0 else ended.stderr


def invoke(folder, body):
    path, answer = os.path.join(folder, "request.json"), os.path.join(folder, "answer.json")
    with open(path, "w") as file:
        json.dump(body, file)
    words = ("--endpoint-name", "cli", "--content-type", "application/json", "--body", "fileb://" + path, answer)
    told = json.loads(aws("sagemaker-runtime", "invoke-endpoint", *words))
    with open(answer) as file:
        return told, json.load(file)


def deploy(folder):
    with open(os.path.join(folder, "model.tar.gz"), "wb") as file:
        file.write(archive(doubling))
    aws("s3", "mb", "s3://cli-models")
    aws("s3", "cp", "--only-show-errors", os.path.join(folder, "model.tar.gz"), "s3://cli-models/model.tar.gz")
    assert "model.tar.gz" in aws("s3", "ls", "s3://cli-models/")
    container = "Image=%s,ModelDataUrl=s3://cli-models/model.tar.gz" % IMAGE
    words = ("--model-name", "cli", "--execution-role-arn", ROLE, "--primary-container", container)
    aws("sagemaker", "create-model", *words)
    assert "Cannot create already existing model" in aws("sagemaker", "create-model", *words, code=255)
    aws("sagemaker", "create-endpoint-config", "--endpoint-config-name", "cli", "--production-variants", VARIANT)
    aws("sagemaker", "create-endpoint", "--endpoint-name", "cli", "--endpoint-config-name", "cli")
    aws("sagemaker", "wait", "endpoint-in-service", "--endpoint-name", "cli")
    status = ("--query", "EndpointStatus", "--output", "text")
    assert aws("sagemaker", "describe-endpoint", "--endpoint-name", "cli", *status).strip() == "InService"


def watch():
    group = ("--log-group-name", "/aws/sagemaker/Endpoints/cli")
    assert "received a request for a double" in aws("logs", "filter-log-events", *group, "--filter-pattern", "double")
    dimensions = "Name=EndpointName,Value=cli"
    listed = json.loads(aws("cloudwatch", "list-metrics", "--namespace", "AWS/SageMaker", "--dimensions", dimensions))
    assert "Invocations" in {metric["MetricName"] for metric in listed["Metrics"]}


def scale():
    aws(
        "application-autoscaling",
        "register-scalable-target",
        *TARGET,
        *RESOURCE,
        "--min-capacity",
        "1",
        "--max-capacity",
        "2",
    )
    policy = {
        "TargetValue": 50,
        "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
    }
    words = ("--policy-name", "cli", "--policy-type", "TargetTrackingScaling")
    settings = ("--target-tracking-scaling-policy-configuration", json.dumps(policy))
    made = json.loads(aws("application-autoscaling", "put-scaling-policy", *TARGET, *RESOURCE, *words, *settings))
    names = [alarm["AlarmName"] for alarm in made["Alarms"]]
    kept = json.loads(aws("cloudwatch", "describe-alarms", "--alarm-names", *names))
    assert len(kept["MetricAlarms"]) == len(names) == 2


def clean():
    aws("sagemaker", "delete-endpoint", "--endpoint-name", "cli")
    aws("sagemaker", "wait", "endpoint-deleted", "--endpoint-name", "cli")
    assert "Could not find endpoint" in aws("sagemaker", "describe-endpoint", "--endpoint-name", "cli", code=255)
    aws("sagemaker", "delete-endpoint-config", "--endpoint-config-name", "cli")
    aws("sagemaker", "delete-model", "--model-name", "cli")
    aws("s3", "rb", "--force", "s3://cli-models")


with tempfile.TemporaryDirectory() as place:
    deploy(place)
    told, answer = invoke(place, {"inputs": [{"name": "X", "shape": [2], "datatype": "FP32", "data": [1.0, 2.5]}]})
    assert told["InvokedProductionVariant"] == "AllTraffic", told
    assert answer["outputs"][0]["data"] == [2.0, 5.0], answer
    watch()
    scale()
    clean()
