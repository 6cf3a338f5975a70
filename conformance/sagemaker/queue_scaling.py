"""Tests an asynchronous endpoint without instances while its queue is empty, with the policies of SageMaker's documentation.

python queue_scaling.py
"""

import json
import time

import boto3
from deployments import deployed, removed, woken
from statements import finish, proven, runtime, s3, sagemaker

NAME = "conformance-queue-scaling"
CONFIG = """
name: "slow" backend: "python"
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
MODEL = """
import time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.25 * len(requests))
        found = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)]) for x in found]
"""
REQUESTS = 40

scaling = boto3.client("application-autoscaling")
variant = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/%s/variant/AllTraffic" % NAME,
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
dimensions = [{"Name": "EndpointName", "Value": NAME}]


def policies():
    scaling.register_scalable_target(**variant, MinCapacity=0, MaxCapacity=2)
    scaling.put_scaling_policy(
        **variant,
        PolicyName="backlog",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": 5.0,
            "CustomizedMetricSpecification": {
                "MetricName": "ApproximateBacklogSizePerInstance",
                "Namespace": "AWS/SageMaker",
                "Dimensions": dimensions,
                "Statistic": "Average",
            },
            "ScaleInCooldown": 600,
            "ScaleOutCooldown": 300,
        },
    )
    woken(
        variant,
        policy="HasBacklogWithoutCapacity-ScalingPolicy",
        alarm="%s-waits" % NAME,
        cooldown=300,
        MetricName="HasBacklogWithoutCapacity",
        Statistic="Average",
        Dimensions=dimensions,
        Period=60,
        EvaluationPeriods=2,
        DatapointsToAlarm=2,
    )


def instances():
    described = sagemaker.describe_endpoint(EndpointName=NAME)
    (found,) = described["ProductionVariants"]
    return found["CurrentInstanceCount"] if described["EndpointStatus"] == "InService" else None


def wait_for(count):
    while instances() != count:
        time.sleep(10)


def main():
    deployed(
        NAME,
        {"slow/config.pbtxt": CONFIG, "slow/1/model.py": MODEL},
        AsyncInferenceConfig={
            "ClientConfig": {"MaxConcurrentInvocationsPerInstance": 1},
            "OutputConfig": {"S3OutputPath": "s3://%s/out" % NAME},
        },
    )
    policies()
    wait_for(0)
    proven("without requests there is no instance", True)
    body = json.dumps({"inputs": [{"name": "X", "shape": [1], "datatype": "FP32", "data": [1]}]})
    asked = [runtime.invoke_endpoint_async(EndpointName=NAME, Body=body.encode()) for _ in range(REQUESTS)]
    for answer in asked:
        bucket, key = answer["OutputLocation"][len("s3://") :].split("/", 1)
        s3.get_waiter("object_exists").wait(Bucket=bucket, Key=key, WaiterConfig={"Delay": 10, "MaxAttempts": 10_000})
    proven("all queued requests get responses", True)
    wait_for(0)
    found = scaling.describe_scaling_activities(ServiceNamespace="sagemaker", ResourceId=variant["ResourceId"])
    steps = [(each["Description"], each["Cause"]) for each in reversed(found["ScalingActivities"])]
    told = "\n".join("%s %s" % step for step in steps)
    woken = [cause for text, cause in steps if "to 1." in text and "%s-waits" % NAME in cause]
    proven("the alarm of a backlog without capacity started the first instance", len(woken) == 1, told)
    # The second instance is started for the backlog, or by the same alarm if the first one starts more slowly than the cooldown.
    proven("the endpoint scaled out to two instances", any("to 2." in text for text, _ in steps), told)
    proven("the endpoint scaled in to zero twice", sum("to 0." in text for text, _ in steps) == 2, told)
    scaling.deregister_scalable_target(**variant)
    removed(NAME)
    finish()


main()
