"""Tests alarms and Application Auto Scaling with boto3: a target tracking policy, and a step policy that an alarm runs.

python scaling.py
"""

import datetime
import json
import time

import boto3
from archives import TWICE_BODY, twice
from deployments import deployed, removed
from statements import POLL_SECONDS, answers, eventually, finish, proven, refused, runtime, sagemaker

ENDPOINT = "conformance-scaling"
RESOURCE = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/%s/variant/AllTraffic" % ENDPOINT,
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
DIMENSIONS = [{"Name": "EndpointName", "Value": ENDPOINT}, {"Name": "VariantName", "Value": "AllTraffic"}]

scaling = boto3.client("application-autoscaling")
cloudwatch = boto3.client("cloudwatch")


def invoke():
    reply = runtime.invoke_endpoint(EndpointName=ENDPOINT, ContentType="application/json", Body=TWICE_BODY)
    return json.loads(reply["Body"].read())["outputs"][0]["data"]


def counts():
    (variant,) = sagemaker.describe_endpoint(EndpointName=ENDPOINT)["ProductionVariants"]
    return variant["CurrentInstanceCount"], variant["DesiredInstanceCount"]


def instances(count):
    """Returns whether the endpoint has that many instances within some minutes; it must respond meanwhile."""
    end = time.monotonic() + 180
    while time.monotonic() < end:
        if invoke() != [2.0, 4.0]:
            return False
        status = sagemaker.describe_endpoint(EndpointName=ENDPOINT)["EndpointStatus"]
        if counts() == (count, count) and status == "InService":
            return True
        time.sleep(POLL_SECONDS)
    return False


def tracking():
    """Creates the policy of AWS's article unchanged."""
    scaling.register_scalable_target(MinCapacity=1, MaxCapacity=5, **RESOURCE)
    answer = scaling.put_scaling_policy(
        PolicyName="GPUUtil-ScalingPolicy",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": 60.0,
            "CustomizedMetricSpecification": {
                "MetricName": "GPUUtilization",
                "Namespace": "/aws/sagemaker/Endpoints",
                "Dimensions": DIMENSIONS,
                "Statistic": "Average",
                "Unit": "Percent",
            },
            "ScaleInCooldown": 600,
            "ScaleOutCooldown": 200,
        },
        **RESOURCE,
    )
    names = [alarm["AlarmName"] for alarm in answer["Alarms"]]
    proven("a target tracking policy creates its two alarms", len(names) == 2, str(names))
    alarms = cloudwatch.describe_alarms(AlarmNames=names)["MetricAlarms"]
    found = sorted((alarm["ComparisonOperator"], alarm["Threshold"], alarm["EvaluationPeriods"]) for alarm in alarms)
    expected = [("GreaterThanThreshold", 60.0, 3), ("LessThanThreshold", 54.0, 15)]
    proven("the alarms evaluate the metric above and below the target", found == expected, str(found))
    (policy,) = scaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
    given = policy["TargetTrackingScalingPolicyConfiguration"]
    proven("DescribeScalingPolicies returns the policy unchanged", given["ScaleOutCooldown"] == 200, str(given))


def fine_grained():
    """Tests a predefined metric with a resolution of ten seconds."""
    kind = "SageMakerVariantConcurrentRequestsPerModelHighResolution"
    configuration = {"TargetValue": 5.0, "PredefinedMetricSpecification": {"PredefinedMetricType": kind}}
    answer = scaling.put_scaling_policy(
        PolicyName="concurrency",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration=configuration,
        **RESOURCE,
    )
    alarms = cloudwatch.describe_alarms(AlarmNames=[each["AlarmName"] for each in answer["Alarms"]])["MetricAlarms"]
    found = sorted((alarm["MetricName"], alarm["Period"], alarm["EvaluationPeriods"]) for alarm in alarms)
    expected = [("ConcurrentRequestsPerModel", 10, 3), ("ConcurrentRequestsPerModel", 10, 90)]
    proven("a high-resolution policy evaluates periods of ten seconds", found == expected, str(found))
    scaling.delete_scaling_policy(PolicyName="concurrency", **RESOURCE)
    refused(
        "an unknown predefined metric is rejected with the supported ones",
        "ValidationException",
        "ALBRequestCountPerTarget is not supported by this platform yet for .*; SageMakerVariantInvocationsPerInstance and",
        lambda: scaling.put_scaling_policy(
            PolicyName="concurrency",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={
                "TargetValue": 5.0,
                "PredefinedMetricSpecification": {"PredefinedMetricType": "ALBRequestCountPerTarget"},
            },
            **RESOURCE,
        ),
    )


def activities():
    return scaling.describe_scaling_activities(ServiceNamespace="sagemaker")["ScalingActivities"]


def action_history():
    found = cloudwatch.describe_alarm_history(AlarmName="waiting", HistoryItemType="Action")["AlarmHistoryItems"]
    return [item["HistorySummary"] for item in found]


def stepping():
    policy = scaling.put_scaling_policy(
        PolicyName="steps",
        PolicyType="StepScaling",
        StepScalingPolicyConfiguration={
            "AdjustmentType": "ChangeInCapacity",
            "StepAdjustments": [
                {"MetricIntervalLowerBound": 0, "MetricIntervalUpperBound": 10, "ScalingAdjustment": 1},
                {"MetricIntervalLowerBound": 10, "ScalingAdjustment": 2},
            ],
            "Cooldown": 1,
        },
        **RESOURCE,
    )
    before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=60)
    datum = {"MetricName": "Waiting", "Value": 25.0, "Timestamp": before}
    cloudwatch.put_metric_data(Namespace="mine", MetricData=[datum])
    cloudwatch.put_metric_alarm(
        AlarmName="waiting",
        Namespace="mine",
        MetricName="Waiting",
        Statistic="Maximum",
        Period=60,
        EvaluationPeriods=3,
        DatapointsToAlarm=1,
        Threshold=5,
        ComparisonOperator="GreaterThanThreshold",
        AlarmActions=[policy["PolicyARN"]],
    )
    told = eventually(action_history)
    proven("an alarm runs its action", told == ["Successfully executed action %s" % policy["PolicyARN"]], str(told))
    state = cloudwatch.describe_alarms(AlarmNames=["waiting"])["MetricAlarms"][0]
    proven(
        "the alarm has a StateReason",
        "1 out of the last 1 datapoints [25.0 " in state["StateReason"],
        state["StateReason"],
    )
    # While the alarm is in ALARM it runs its policy every minute, however long instances take to start.
    cloudwatch.delete_alarms(AlarmNames=["waiting"])
    proven("the step policy adds two instances, and no request fails", instances(3), str(counts()))
    eventually(lambda: activities()[0]["StatusCode"] != "InProgress")
    found = [(each["Cause"], each["StatusCode"]) for each in activities()]
    cause = "monitor alarm waiting in state ALARM triggered policy steps"
    proven("the activity names the alarm", found == [(cause, "Successful")], str(found))


def bounds():
    scaling.register_scalable_target(MinCapacity=1, MaxCapacity=1, **RESOURCE)
    proven("a new maximum applies at once, and no request fails", instances(1), str(counts()))
    pattern = "^Maximum capacity cannot be less than minimum capacity$"
    refused(
        "a maximum below the minimum is rejected",
        "ValidationException",
        pattern,
        lambda: scaling.register_scalable_target(MinCapacity=3, MaxCapacity=2, **RESOURCE),
    )


def clean():
    removed(ENDPOINT)
    answers(
        "a deleted endpoint's scalable targets are deleted",
        lambda: scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"],
        [],
    )
    answers("the targets' alarms are deleted", lambda: cloudwatch.describe_alarms()["MetricAlarms"], [])


deployed(ENDPOINT, twice, {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "twice"})
tracking()
fine_grained()
stepping()
bounds()
clean()
finish()
