"""Tests an inference component that scales in to zero copies, and out again for requests, as in SageMaker's guide.

    python from_zero.py

Runs on a fast clock. The exit code is 1 if a check fails.
"""

import io
import json
import time

import boto3
from archives import archive, doubling
from botocore.exceptions import ClientError
from deployments import removed, woken
from statements import BUCKET, IMAGE, ROLE, finish, proven, runtime, s3, sagemaker

ENDPOINT = "conformance-from-zero"
COMPONENT = "sleeping"
TARGET = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "inference-component/%s" % COMPONENT,
    "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
}
NO_CAPACITY = (
    "Inference Component has no capacity to process this request. ApplicationAutoScaling may be in-progress (if configured) or try to "
    "increase the capacity by invoking UpdateInferenceComponentRuntimeConfig API."
)
BODY = json.dumps({"inputs": [{"name": "X", "shape": [1], "datatype": "FP32", "data": [21]}]})
POLL_SECONDS = 10
autoscaling = boto3.client("application-autoscaling")
cloudwatch = boto3.client("cloudwatch")


def ask():
    """Returns 42.0, or the error that the caller gets."""
    try:
        reply = runtime.invoke_endpoint(
            EndpointName=ENDPOINT, InferenceComponentName=COMPONENT, ContentType="application/json", Body=BODY
        )
    except ClientError as error:
        found = error.response["Error"]
        return found["Code"], found["Message"]
    return json.loads(reply["Body"].read())["outputs"][0]["data"][0]


def copies():
    found = sagemaker.describe_inference_component(InferenceComponentName=COMPONENT)["RuntimeConfig"]
    return found["DesiredCopyCount"], found["CurrentCopyCount"]


def instances():
    (variant,) = sagemaker.describe_endpoint(EndpointName=ENDPOINT)["ProductionVariants"]
    return variant["CurrentInstanceCount"]


def activities():
    """Returns the scaling activities, oldest first."""
    page = autoscaling.describe_scaling_activities(ServiceNamespace="sagemaker", ResourceId=TARGET["ResourceId"])
    return page["ScalingActivities"][::-1]


def until(statement, condition, minutes=60):
    end = time.time() + minutes * 60
    while not (reached := condition()) and time.time() < end:
        time.sleep(POLL_SECONDS)
    proven(statement, reached)


def deploy():
    s3.create_bucket(Bucket=BUCKET)
    s3.upload_fileobj(io.BytesIO(archive(doubling)), BUCKET, "from-zero.tar.gz")
    variant = {
        "VariantName": "v",
        "InstanceType": "ml.m5.large",
        "InitialInstanceCount": 1,
        "ManagedInstanceScaling": {"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 2},
        "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"},
    }
    sagemaker.create_endpoint_config(EndpointConfigName=ENDPOINT, ProductionVariants=[variant], ExecutionRoleArn=ROLE)
    sagemaker.create_endpoint(EndpointName=ENDPOINT, EndpointConfigName=ENDPOINT)
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=ENDPOINT)
    sagemaker.create_inference_component(
        InferenceComponentName=COMPONENT,
        EndpointName=ENDPOINT,
        VariantName="v",
        Specification={
            "Container": {"Image": IMAGE, "ArtifactUrl": "s3://%s/from-zero.tar.gz" % BUCKET},
            "ComputeResourceRequirements": {"NumberOfCpuCoresRequired": 1, "MinMemoryRequiredInMb": 512},
        },
        RuntimeConfig={"CopyCount": 1},
    )
    until("it is in service", lambda: copies() == (1, 1))


def scale():
    """Creates a policy on the requests of each copy, and one that starts the first copy on the alarm of failed requests."""
    autoscaling.register_scalable_target(MinCapacity=0, MaxCapacity=1, **TARGET)
    concurrency = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"
    tracking = autoscaling.put_scaling_policy(
        PolicyName="follow",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "PredefinedMetricSpecification": {"PredefinedMetricType": concurrency},
            "TargetValue": 5,
            "ScaleInCooldown": 120,
            "ScaleOutCooldown": 60,
        },
        **TARGET,
    )
    alarms = cloudwatch.describe_alarms(AlarmNames=[each["AlarmName"] for each in tracking["Alarms"]])["MetricAlarms"]
    watched = {(each["MetricName"], each["Period"], each["Dimensions"][0]["Value"]) for each in alarms}
    proven(
        "its copies are followed by the ten seconds", watched == {("ConcurrentRequestsPerCopy", 10, COMPONENT)}, watched
    )
    woken(
        TARGET,
        policy="wake",
        alarm="wake",
        cooldown=60,
        MetricName="NoCapacityInvocationFailures",
        Statistic="Maximum",
        Dimensions=[{"Name": "InferenceComponentName", "Value": COMPONENT}],
        Period=30,
        EvaluationPeriods=1,
        DatapointsToAlarm=1,
    )


def sleeps(statement):
    until("%s the component has no copy" % statement, lambda: copies() == (0, 0))
    until("%s the instances are stopped" % statement, lambda: instances() == 0)


def wakes(statement):
    told = set()

    def asked():
        found = ask()
        if found != 42.0:
            told.add(found)
        return found == 42.0

    until("%s a client that retries gets a response" % statement, asked)
    proven("%s the failed requests got the reason" % statement, told == {("ValidationError", NO_CAPACITY)}, told)


deploy()
proven("the component responds", ask() == 42.0)
scale()
sleeps("without requests")
wakes("with requests")
sleeps("after that")
wakes("and again")
# The last activity ends shortly after its copy has responded.
until("the scaling activities have ended", lambda: all(each["StatusCode"] != "InProgress" for each in activities()))
done = [(each["StatusCode"], each["Description"]) for each in activities()]
expected = [("Successful", "Setting desired copy count to %d." % count) for count in (0, 1, 0, 1)]
proven("the scaling activities are listed", done == expected, done)
causes = [each["Cause"].split("monitor alarm ")[1].split(" in state")[0] for each in activities()]
proven(
    "each activity names its alarm", [each.split("-")[0] for each in causes] == ["TargetTracking", "wake"] * 2, causes
)
sagemaker.delete_inference_component(InferenceComponentName=COMPONENT)
until("the component is deleted", lambda: not sagemaker.list_inference_components()["InferenceComponents"])
removed(ENDPOINT)
finish()
