"""Tests variants, updates, weights and capacities of an endpoint with boto3 while a client invokes it continuously.

python traffic.py
"""

import datetime
import io
import json
import threading
import time

import boto3
from archives import archive
from botocore.exceptions import ClientError
from statements import (
    BUCKET,
    IMAGE,
    POLL_SECONDS,
    ROLE,
    answers,
    finish,
    proven,
    refused,
    runtime,
    s3,
    sagemaker,
)

SETTLED_SECONDS = 300
ENDPOINT = "conformance-traffic"
MODEL = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        assert %r != "broken", "no weights here"
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([[%r]], dtype=object))]) for _ in requests]
"""
CONFIG = """
name: "model"
backend: "python"
max_batch_size: 8
input [ { name: "IN" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_STRING dims: [ 1 ] } ]
"""
BODY = json.dumps({"inputs": [{"name": "IN", "shape": [1, 1], "datatype": "FP32", "data": [1]}]})
cloudwatch = boto3.client("cloudwatch")


def configure(name, **variants):
    """Creates a configuration whose variants each have a model of the configuration's name; `variants`: weight and instances."""
    key = "traffic/%s.tar.gz" % name
    model = MODEL % (name, name)
    s3.upload_fileobj(io.BytesIO(archive({"model/config.pbtxt": CONFIG, "model/1/model.py": model})), BUCKET, key)
    container = {"Image": IMAGE, "ModelDataUrl": "s3://%s/%s" % (BUCKET, key)}
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer=container)
    sagemaker.create_endpoint_config(
        EndpointConfigName=name,
        ProductionVariants=[
            {
                "VariantName": variant,
                "ModelName": name,
                "InstanceType": "ml.m5.large",
                "InitialInstanceCount": instances,
                "InitialVariantWeight": weight,
            }
            for variant, (weight, instances) in variants.items()
        ],
    )


def ask(**more):
    reply = runtime.invoke_endpoint(EndpointName=ENDPOINT, ContentType="application/json", Body=BODY, **more)
    return reply["InvokedProductionVariant"], json.loads(reply["Body"].read())["outputs"][0]["data"][0]


class Client(threading.Thread):
    """Invokes the endpoint until it is stopped."""

    def __init__(self):
        super().__init__(daemon=True)
        self.answers, self.failures, self.over = {}, [], threading.Event()

    def run(self):
        while not self.over.is_set():
            try:
                answer = ask()
                self.answers[answer] = self.answers.get(answer, 0) + 1
            except ClientError as error:
                self.failures.append(str(error))

    def stop(self):
        self.over.set()
        self.join()


def described():
    return sagemaker.describe_endpoint(EndpointName=ENDPOINT)


def settled():
    """Polls, because the waiter treats a rolled-back endpoint as in service."""
    deadline = time.monotonic() + SETTLED_SECONDS
    while True:
        found = described()
        if found["EndpointStatus"] not in ("Creating", "Updating", "RollingBack") or time.monotonic() > deadline:
            return found
        time.sleep(POLL_SECONDS)


def sizes(found):
    return {
        each["VariantName"]: (each["CurrentWeight"], each["DesiredWeight"], each["CurrentInstanceCount"])
        for each in found["ProductionVariants"]
    }


def shares():
    counts = {}
    for _ in range(40):
        variant, _model = ask()
        counts[variant] = counts.get(variant, 0) + 1
    return counts


def canary(size):
    return {
        "BlueGreenUpdatePolicy": {
            "TrafficRoutingConfiguration": {"Type": "CANARY", "CanarySize": size, "WaitIntervalInSeconds": 2},
            "TerminationWaitInSeconds": 1,
            "MaximumExecutionTimeoutInSeconds": 600,
        }
    }


def main():
    s3.create_bucket(Bucket=BUCKET)
    configure("first", a=(3, 1), b=(1, 1))
    sagemaker.create_endpoint(EndpointName=ENDPOINT, EndpointConfigName="first")
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=ENDPOINT)
    answers("requests are routed by weight", shares, {"a": 30, "b": 10})
    answers("TargetVariant selects a variant", lambda: ask(TargetVariant="b"), ("b", "first"))
    refused(
        "an unknown TargetVariant is an error", "ValidationError", "Variant c not found", lambda: ask(TargetVariant="c")
    )
    asked = {"a": 30, "b": 11}

    client = Client()
    client.start()
    resize = lambda *wanted: sagemaker.update_endpoint_weights_and_capacities(
        EndpointName=ENDPOINT, DesiredWeightsAndCapacities=list(wanted)
    )
    resize(
        {"VariantName": "a", "DesiredWeight": 0}, {"VariantName": "b", "DesiredWeight": 5, "DesiredInstanceCount": 2}
    )
    answers("weights and capacities are changed", lambda: sizes(settled()), {"a": (0.0, 0.0, 1), "b": (5.0, 5.0, 2)})
    twice = [{"VariantName": "a", "DesiredWeight": 1}] * 2
    text = r'^The variant name "a" was non-unique within the request\.$'
    refused("a repeated variant is rejected", "ValidationException", text, lambda: resize(*twice))
    text = r'^The variant name\(s\) "z" is/are not present within endpoint configuration "first"\.$'
    refused("an unknown variant is rejected", "ValidationException", text, lambda: resize({"VariantName": "z"}))

    configure("second", a=(1, 1), b=(1, 1))
    percent = {"Type": "CAPACITY_PERCENT", "Value": 50}
    sagemaker.update_endpoint(
        EndpointName=ENDPOINT,
        EndpointConfigName="second",
        RetainAllVariantProperties=True,
        ExcludeRetainedVariantProperties=[{"VariantPropertyType": "DesiredInstanceCount"}],
        DeploymentConfig=canary(percent),
    )
    listed = sagemaker.list_endpoints(StatusEquals="Updating")["Endpoints"]
    proven("the endpoint is Updating", [each["EndpointName"] for each in listed] == [ENDPOINT])
    found = settled()
    proven(
        "a canary update completes", (found["EndpointStatus"], found["EndpointConfigName"]) == ("InService", "second")
    )
    proven("weights are retained", sizes(found) == {"a": (0.0, 0.0, 1), "b": (5.0, 5.0, 1)}, str(sizes(found)))
    proven("the deployment configuration is retained", found["LastDeploymentConfig"] == canary(percent))
    answers("the new model responds", ask, ("b", "second"))
    asked["b"] += 1

    configure("broken", a=(1, 1))
    sagemaker.update_endpoint(EndpointName=ENDPOINT, EndpointConfigName="broken")
    found = settled()
    proven("an update that does not start is rolled back", found["EndpointConfigName"] == "second", str(found))
    proven(
        "the rollback has a FailureReason",
        "no weights here" in found.get("FailureReason", ""),
        found.get("FailureReason", ""),
    )

    cloudwatch.put_metric_alarm(
        AlarmName="conformance-errors",
        MetricName="Errors",
        Namespace="Conformance",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
    )
    alarmed = dict(canary(percent), AutoRollbackConfiguration={"Alarms": [{"AlarmName": "conformance-errors"}]})
    alarmed["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]["WaitIntervalInSeconds"] = 300
    sagemaker.update_endpoint(EndpointName=ENDPOINT, EndpointConfigName="first", DeploymentConfig=alarmed)
    # The next evaluation sets the alarm's state by its metric again.
    while sagemaker.list_endpoints(StatusEquals="Updating")["Endpoints"]:
        cloudwatch.set_alarm_state(AlarmName="conformance-errors", StateValue="ALARM", StateReason="asked for")
        time.sleep(0.2)
    found = settled()
    reason = "The CloudWatch alarm conformance-errors is in the state ALARM."
    proven(
        "an alarm rolls an update back",
        (found["EndpointConfigName"], found.get("FailureReason")) == ("second", reason),
        str(found),
    )

    client.stop()
    proven("no request failed", client.failures == [], str(client.failures[:3]))
    counted(client, asked)
    deleted(alarmed)
    finish()


def counted(client, asked):
    for (variant, _model), count in client.answers.items():
        asked[variant] = asked.get(variant, 0) + count
    now = datetime.datetime.now(datetime.timezone.utc)
    for variant, count in sorted(asked.items()):
        points = cloudwatch.get_metric_statistics(
            Namespace="AWS/SageMaker",
            MetricName="Invocations",
            Dimensions=[{"Name": "EndpointName", "Value": ENDPOINT}, {"Name": "VariantName", "Value": variant}],
            StartTime=now - datetime.timedelta(hours=1),
            EndTime=now + datetime.timedelta(hours=1),
            Period=86400,
            Statistics=["Sum"],
        )["Datapoints"]
        found = sum(point["Sum"] for point in points)
        proven("CloudWatch has the number of invocations of %s" % variant, found == count, "%s, %s" % (found, count))


def deleted(alarmed):
    cloudwatch.set_alarm_state(AlarmName="conformance-errors", StateValue="OK", StateReason="asked for")
    sagemaker.update_endpoint(EndpointName=ENDPOINT, EndpointConfigName="first", DeploymentConfig=alarmed)
    sagemaker.delete_endpoint(EndpointName=ENDPOINT)
    started = time.time()
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=ENDPOINT)
    took = time.time() - started
    proven("an endpoint that is Updating can be deleted, and the waiter returns", took < 25, "%.1f s" % took)


main()
