"""Tests inference components with boto3.

python components.py create | again
"""

import io
import json
import sys
import time

import boto3
from archives import archive
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

autoscaling = boto3.client("application-autoscaling")
cloudwatch = boto3.client("cloudwatch")
ENDPOINT = "conformance-components"
MODEL = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
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
NEEDS = {"NumberOfCpuCoresRequired": 0.25, "MinMemoryRequiredInMb": 256}


def ask(component, **more):
    reply = runtime.invoke_endpoint(
        EndpointName=ENDPOINT,
        InferenceComponentName=component,
        ContentType="application/json",
        Body=BODY,
        **more,
    )
    return json.loads(reply["Body"].read())["outputs"][0]["data"][0]


def upload(name):
    files = {"model/config.pbtxt": CONFIG, "model/1/model.py": MODEL % name}
    s3.upload_fileobj(io.BytesIO(archive(files)), BUCKET, "components/%s.tar.gz" % name)
    return {"Image": IMAGE, "ModelDataUrl": "s3://%s/components/%s.tar.gz" % (BUCKET, name)}


def settled(name):
    """Waits as notebooks do, because boto3 has no waiter for components."""
    while True:
        found = sagemaker.describe_inference_component(InferenceComponentName=name)
        if found["InferenceComponentStatus"] in ("InService", "Failed"):
            return found
        time.sleep(POLL_SECONDS)


def state(name):
    found = settled(name)
    config = found["RuntimeConfig"]
    return found["InferenceComponentStatus"], config["DesiredCopyCount"], config["CurrentCopyCount"]


def create_component(name, copies=1, **specification):
    return sagemaker.create_inference_component(
        InferenceComponentName=name,
        EndpointName=ENDPOINT,
        VariantName="v",
        Specification={"ComputeResourceRequirements": NEEDS, **specification},
        RuntimeConfig={"CopyCount": copies},
    )


def refusals():
    code = "ValidationException"
    call = lambda: create_component("adapter", BaseInferenceComponentName="named")
    refused("adapters", code, "Merge the adapter into the weights of its base", call)
    spec = {"ModelName": "named", "ComputeResourceRequirements": NEEDS}
    several = lambda *types: (
        lambda: sagemaker.create_inference_component(
            InferenceComponentName="several",
            EndpointName=ENDPOINT,
            Specifications=[{**spec, "InstanceType": each} for each in types],
            RuntimeConfig={"CopyCount": 1},
        )
    )
    refused(
        "no type of the variant",
        code,
        "has instances of ml.m5.large, and .* for ml.c5.large,",
        several("ml.c5.large", "ml.g5.xlarge"),
    )
    refused("a type twice", code, "InstanceType ml.m5.large twice", several("ml.m5.large", "ml.m5.large"))
    huge = dict(NEEDS, MinMemoryRequiredInMb=100_000_000)
    call = lambda: create_component("huge", ModelName="named", ComputeResourceRequirements=huge)
    refused("more than an instance has", code, "more than an instance of ml.m5.large has on this platform", call)
    refused(
        "a name twice", code, "Cannot create already existing", lambda: create_component("named", ModelName="named")
    )
    refused("no model", code, "Either ModelName or Container must be given", lambda: create_component("none"))
    call = lambda: sagemaker.delete_endpoint(EndpointName=ENDPOINT)
    refused("an endpoint with components is not deleted", code, 'have to be deleted first: "contained", "named"', call)
    call = lambda: sagemaker.describe_inference_component(InferenceComponentName="nobody")
    refused("a missing component is an error", code, "^Could not find inference component", call)
    call = lambda: runtime.invoke_endpoint(EndpointName=ENDPOINT, Body=BODY)
    refused("a request without a name", "ValidationError", "requires an inference component name header", call)
    refused(
        "a request for a missing component",
        "ValidationError",
        "^Inference Component nobody of endpoint",
        lambda: ask("nobody"),
    )


def create():
    s3.create_bucket(Bucket=BUCKET)
    sagemaker.create_model(ModelName="named", ExecutionRoleArn=ROLE, PrimaryContainer=upload("named"))
    variant = {
        "VariantName": "v",
        "InstanceType": "ml.m5.large",
        "InitialInstanceCount": 1,
        "ManagedInstanceScaling": {
            "Status": "ENABLED",
            "MinInstanceCount": 1,
            "MaxInstanceCount": 2,
            "ScaleInPolicy": {"Strategy": "IDLE_RELEASE"},
        },
        "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"},
    }
    configure = lambda **more: sagemaker.create_endpoint_config(
        EndpointConfigName="shared", ProductionVariants=[variant], **more
    )
    refused("no role", "ValidationException", "^ExecutionRoleArn must be given", configure)
    configure(ExecutionRoleArn=ROLE)
    sagemaker.create_endpoint(EndpointName=ENDPOINT, EndpointConfigName="shared")
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=ENDPOINT)
    scheduling = {
        "DataCacheConfig": {"EnableCaching": True},
        "SchedulingConfig": {
            "PlacementStrategy": "BINPACK",
            "AvailabilityZoneBalance": {"EnforcementMode": "PERMISSIVE", "MaxImbalance": 1},
        },
    }
    create_component("named", ModelName="named", copies=2, **scheduling)
    answers("a component of a model", lambda: state("named"), ("InService", 2, 2))
    container = upload("contained")
    container = {"Image": IMAGE, "ArtifactUrl": container["ModelDataUrl"], "Environment": {"A": "b"}}
    create_component("contained", Container=container)
    answers("a component of a container", lambda: state("contained"), ("InService", 1, 1))
    found = settled("contained")["Specification"]
    proven(
        "DescribeInferenceComponent returns the component",
        found["Container"]["ArtifactUrl"] == container["ArtifactUrl"],
        found,
    )
    proven(
        "DescribeInferenceComponent returns the required resources",
        found["ComputeResourceRequirements"] == NEEDS,
        found,
    )
    found = settled("named")["Specification"]
    proven(
        "DescribeInferenceComponent returns the placement of copies",
        {name: found[name] for name in scheduling} == scheduling,
        found,
    )
    answers("each component responds", lambda: (ask("named"), ask("contained")), ("named", "contained"))
    refusals()
    listed = sagemaker.list_inference_components(EndpointNameEquals=ENDPOINT, SortBy="Name", SortOrder="Ascending")
    names = [each["InferenceComponentName"] for each in listed["InferenceComponents"]]
    proven("ListInferenceComponents returns both components", names == ["contained", "named"], names)
    nobody = sagemaker.list_inference_components(EndpointNameEquals="another")["InferenceComponents"]
    proven("ListInferenceComponents of another endpoint returns none", nobody == [], nobody)
    sagemaker.update_inference_component_runtime_config(
        InferenceComponentName="named", DesiredRuntimeConfig={"CopyCount": 0}
    )
    answers("a component can be scaled to zero copies", lambda: state("named"), ("InService", 0, 0))
    text = "^Inference Component has no capacity to process this request"
    refused("an invocation without copies is an error", "ValidationError", text, lambda: ask("named"))


def scaling():
    target = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": "inference-component/contained",
        "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
    }
    autoscaling.register_scalable_target(MinCapacity=0, MaxCapacity=2, **target)
    config = {
        "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerInferenceComponentInvocationsPerCopy"},
        "TargetValue": 5.0,
    }
    policy = {"PolicyName": "tracked", "PolicyType": "TargetTrackingScaling", **target}
    alarms = autoscaling.put_scaling_policy(TargetTrackingScalingPolicyConfiguration=config, **policy)["Alarms"]
    names = [each["AlarmName"] for each in alarms]
    found = cloudwatch.describe_alarms(AlarmNames=names)["MetricAlarms"]
    watched = {(each["MetricName"], each["Dimensions"][0]["Value"]) for each in found}
    proven("a target tracking policy can scale copies", watched == {("InvocationsPerCopy", "contained")}, watched)
    other = {"PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}}
    call = lambda: autoscaling.put_scaling_policy(
        TargetTrackingScalingPolicyConfiguration=dict(config, **other), **policy
    )
    refused(
        "a policy for copies cannot use the metric of variants",
        "ValidationException",
        "SageMakerInferenceComponentInvocationsPerCopy and .* are",
        call,
    )
    variant = dict(
        target,
        ResourceId="endpoint/%s/variant/v" % ENDPOINT,
        ScalableDimension="sagemaker:variant:DesiredInstanceCount",
    )
    call = lambda: autoscaling.register_scalable_target(MinCapacity=0, MaxCapacity=2, **variant)
    refused(
        "variants cannot be scaled to zero",
        "ValidationException",
        "^MinCapacity for .*DesiredInstanceCount must be at least 1",
        call,
    )
    autoscaling.register_scalable_target(MinCapacity=2, MaxCapacity=2, **target)
    while state("contained")[2] != 2:
        time.sleep(POLL_SECONDS)
    proven("copies are scaled out to the minimum", state("contained") == ("InService", 2, 2))
    autoscaling.deregister_scalable_target(**target)


def several():
    """Tests a specification for each instance type: the one of the variant's type runs."""
    specs = [
        {
            "InstanceType": each,
            "Container": {"Image": IMAGE, "ArtifactUrl": upload(each)["ModelDataUrl"]},
            "ComputeResourceRequirements": NEEDS,
        }
        for each in ("ml.g5.xlarge", "ml.m5.large")
    ]
    sagemaker.create_inference_component(
        InferenceComponentName="several",
        EndpointName=ENDPOINT,
        VariantName="v",
        Specifications=specs,
        RuntimeConfig={"CopyCount": 1},
    )
    answers("one of several specifications", lambda: state("several"), ("InService", 1, 1))
    answers("the specification of the variant's instance type is used", lambda: ask("several"), "ml.m5.large")
    found = settled("several")
    proven("Specification is absent", "Specification" not in found, found)
    told = [(each["InstanceType"], each["Container"]["ArtifactUrl"]) for each in found["Specifications"]]
    asked = [(each["InstanceType"], each["Container"]["ArtifactUrl"]) for each in specs]
    proven("DescribeInferenceComponent returns all specifications", told == asked, told)
    alarm = {"Namespace": "conformance", "MetricName": "errors", "Statistic": "Sum", "Threshold": 1.0}
    cloudwatch.put_metric_alarm(
        AlarmName="component-errors",
        Period=60,
        EvaluationPeriods=1,
        ComparisonOperator="GreaterThanThreshold",
        TreatMissingData="ignore",
        **alarm,
    )
    policy = {
        "RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "COPY_COUNT", "Value": 1}, "WaitIntervalInSeconds": 600},
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "component-errors"}]},
    }
    call = lambda name: sagemaker.update_inference_component(
        InferenceComponentName="several",
        Specification={"Container": {"Image": IMAGE, "ArtifactUrl": upload("rolled")["ModelDataUrl"]}},
        DeploymentConfig={**policy, "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": name}]}},
    )
    refused(
        "an unknown alarm is rejected", "ValidationException", "Could not find CloudWatch alarms", lambda: call("x")
    )
    call("component-errors")
    while ask("several") != "rolled":
        time.sleep(POLL_SECONDS)
    cloudwatch.set_alarm_state(AlarmName="component-errors", StateValue="ALARM", StateReason="a test")
    answers("an alarm rolls an update back", lambda: state("several"), ("InService", 1, 1))
    found = settled("several")
    reason = found.get("FailureReason", "")
    proven(
        "the rollback has the reason", reason == "The CloudWatch alarm component-errors is in the state ALARM.", reason
    )
    proven(
        "the deployment configuration is returned",
        found["LastDeploymentConfig"] == policy,
        found["LastDeploymentConfig"],
    )
    answers("the old version responds after the rollback", lambda: ask("several"), "ml.m5.large")
    sagemaker.delete_inference_component(InferenceComponentName="several")


def again():
    while state("contained") != ("InService", 1, 1):
        time.sleep(POLL_SECONDS)
    answers("the component is in service after kill -9", lambda: ask("contained"), "contained")
    answers("the other component still has no copies", lambda: state("named"), ("InService", 0, 0))
    scaling()
    several()
    container = upload("second")
    sagemaker.update_inference_component(
        InferenceComponentName="contained",
        Specification={"Container": {"Image": IMAGE, "ArtifactUrl": container["ModelDataUrl"]}},
        RuntimeConfig={"CopyCount": 2},
        DeploymentConfig={
            "RollingUpdatePolicy": {
                "MaximumBatchSize": {"Type": "COPY_COUNT", "Value": 1},
                "WaitIntervalInSeconds": 1,
                "MaximumExecutionTimeoutInSeconds": 600,
            }
        },
    )
    answers("an update in batches completes", lambda: state("contained"), ("InService", 2, 2))
    answers("the new version responds", lambda: ask("contained"), "second")
    for name in ("named", "contained"):
        sagemaker.delete_inference_component(InferenceComponentName=name)
    while sagemaker.list_inference_components()["InferenceComponents"]:
        time.sleep(POLL_SECONDS)
    sagemaker.delete_endpoint(EndpointName=ENDPOINT)
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=ENDPOINT)


{"create": create, "again": again}[sys.argv[1]]()
finish()
