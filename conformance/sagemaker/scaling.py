"""Alarms and Application Auto Scaling with the real boto3: seed 004's policy, a step policy that an alarm runs, and what follows of both.

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
    """Whether the endpoint has so many within some minutes; it answers all the while."""
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
    """Seed 004's policy, as it is."""
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
    proven("a target tracking policy makes its two alarms", len(names) == 2, str(names))
    alarms = cloudwatch.describe_alarms(AlarmNames=names)["MetricAlarms"]
    found = sorted((alarm["ComparisonOperator"], alarm["Threshold"], alarm["EvaluationPeriods"]) for alarm in alarms)
    expected = [("GreaterThanThreshold", 60.0, 3), ("LessThanThreshold", 54.0, 15)]
    proven("which look at its metric above and below the target", found == expected, str(found))
    (policy,) = scaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
    given = policy["TargetTrackingScalingPolicyConfiguration"]
    proven("and the policy is described as it was given", given["ScaleOutCooldown"] == 200, str(given))


def fine_grained():
    """A predefined metric in points of ten seconds."""
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
    proven("a policy of high resolution looks at points of ten seconds", found == expected, str(found))
    scaling.delete_scaling_policy(PolicyName="concurrency", **RESOURCE)
    refused(
        "one of a metric that there is not is refused with those that there are",
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
    proven("the alarm says why", "1 out of the last 1 datapoints [25.0 " in state["StateReason"], state["StateReason"])
    # While it is in ALARM it runs its policy again each minute, however long the instances take.
    cloudwatch.delete_alarms(AlarmNames=["waiting"])
    proven("which is its step policy: two more instances, and no request fails", instances(3), str(counts()))
    eventually(lambda: activities()[0]["StatusCode"] != "InProgress")
    found = [(each["Cause"], each["StatusCode"]) for each in activities()]
    words = "monitor alarm waiting in state ALARM triggered policy steps"
    proven("and the activity says by whom", found == [(words, "Successful")], str(found))


def bounds():
    scaling.register_scalable_target(MinCapacity=1, MaxCapacity=1, **RESOURCE)
    proven("a new maximum is kept at once, and no request fails", instances(1), str(counts()))
    pattern = "^Maximum capacity cannot be less than minimum capacity$"
    refused(
        "bounds that exclude each other are refused",
        "ValidationException",
        pattern,
        lambda: scaling.register_scalable_target(MinCapacity=3, MaxCapacity=2, **RESOURCE),
    )


def clean():
    removed(ENDPOINT)
    answers(
        "an endpoint that is deleted takes its targets along",
        lambda: scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"],
        [],
    )
    answers("and their alarms", lambda: cloudwatch.describe_alarms()["MetricAlarms"], [])


deployed(ENDPOINT, twice, {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "twice"})
tracking()
fine_grained()
stepping()
bounds()
clean()
finish()
