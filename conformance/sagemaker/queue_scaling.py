"""An asynchronous endpoint that has no instance while nothing waits, as SageMaker's documentation has it set up.

python queue_scaling.py
"""

import json
import time

import boto3
from archives import archive
from statements import IMAGE, ROLE, finish, proven, runtime, s3, sagemaker

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
cloudwatch = boto3.client("cloudwatch")
variant = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/%s/variant/all" % NAME,
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
dimensions = [{"Name": "EndpointName", "Value": NAME}]


def deploy():
    s3.create_bucket(Bucket=NAME)
    files = {"slow/config.pbtxt": CONFIG, "slow/1/model.py": MODEL}
    s3.put_object(Bucket=NAME, Key="slow.tar.gz", Body=archive(files))
    container = {
        "Image": IMAGE,
        "ModelDataUrl": "s3://%s/slow.tar.gz" % NAME,
        "Environment": {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "slow"},
    }
    sagemaker.create_model(ModelName=NAME, ExecutionRoleArn=ROLE, PrimaryContainer=container)
    sagemaker.create_endpoint_config(
        EndpointConfigName=NAME,
        ProductionVariants=[
            {"VariantName": "all", "ModelName": NAME, "InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
        ],
        AsyncInferenceConfig={
            "ClientConfig": {"MaxConcurrentInvocationsPerInstance": 1},
            "OutputConfig": {"S3OutputPath": "s3://%s/out" % NAME},
        },
    )
    sagemaker.create_endpoint(EndpointName=NAME, EndpointConfigName=NAME)
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=NAME)


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
    wakes = scaling.put_scaling_policy(
        **variant,
        PolicyName="HasBacklogWithoutCapacity-ScalingPolicy",
        PolicyType="StepScaling",
        StepScalingPolicyConfiguration={
            "AdjustmentType": "ChangeInCapacity",
            "MetricAggregationType": "Average",
            "Cooldown": 300,
            "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}],
        },
    )
    cloudwatch.put_metric_alarm(
        AlarmName="%s-waits" % NAME,
        MetricName="HasBacklogWithoutCapacity",
        Namespace="AWS/SageMaker",
        Statistic="Average",
        EvaluationPeriods=2,
        DatapointsToAlarm=2,
        Threshold=1,
        ComparisonOperator="GreaterThanOrEqualToThreshold",
        TreatMissingData="missing",
        Dimensions=dimensions,
        Period=60,
        AlarmActions=[wakes["PolicyARN"]],
    )


def instances():
    described = sagemaker.describe_endpoint(EndpointName=NAME)
    (found,) = described["ProductionVariants"]
    return found["CurrentInstanceCount"] if described["EndpointStatus"] == "InService" else None


def wait_for(count):
    while instances() != count:
        time.sleep(10)


def main():
    deploy()
    policies()
    wait_for(0)
    proven("nothing waits: no instance", True)
    body = json.dumps({"inputs": [{"name": "X", "shape": [1], "datatype": "FP32", "data": [1]}]})
    asked = [runtime.invoke_endpoint_async(EndpointName=NAME, Body=body.encode()) for _ in range(REQUESTS)]
    for answer in asked:
        bucket, key = answer["OutputLocation"][len("s3://") :].split("/", 1)
        s3.get_waiter("object_exists").wait(Bucket=bucket, Key=key, WaiterConfig={"Delay": 10, "MaxAttempts": 10_000})
    proven("all that waited is answered", True)
    wait_for(0)
    found = scaling.describe_scaling_activities(ServiceNamespace="sagemaker", ResourceId=variant["ResourceId"])
    steps = [(each["Description"], each["Cause"]) for each in reversed(found["ScalingActivities"])]
    told = "\n".join("%s %s" % step for step in steps)
    woken = [cause for text, cause in steps if "to 1." in text and "%s-waits" % NAME in cause]
    proven("the alarm of a backlog without an instance brought the first", len(woken) == 1, told)
    # By the backlog of the first, or by the same alarm, where the first takes longer to start than the policy's cooldown.
    proven("then there were two", any("to 2." in text for text, _ in steps), told)
    proven("and it went to zero, twice", sum("to 0." in text for text, _ in steps) == 2, told)
    scaling.deregister_scalable_target(**variant)
    sagemaker.delete_endpoint(EndpointName=NAME)
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=NAME)
    finish()


main()
