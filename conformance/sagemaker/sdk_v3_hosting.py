"""Tests every supported operation of SageMaker and its runtime with the resources of the sagemaker SDK v3.

python sdk_v3_hosting.py OPERATION...

The arguments are the operations to call; settings come from the environment that `galatea env --proxy` prints. Each check prints a line;
the exit code is 1 if one fails.
"""

import io
import json
import os
import sys

os.environ.setdefault("SAGEMAKER_CORE_ADMIN_CONFIG_OVERRIDE", os.devnull)

from archives import archive, doubling
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from sagemaker.core import shapes
from sagemaker.core.resources import Endpoint, EndpointConfig, InferenceComponent, Model, Tag, TransformJob
from statements import IMAGE, ROLE, answers, finish, proven, runtime, s3, sagemaker

BUCKET = "conformance-v3h-hosting"
NAME = "v3h-hosting"
URI = "s3://%s/" % BUCKET
REQUEST = json.dumps({"inputs": [{"name": "X", "shape": [2], "datatype": "FP32", "data": [1.0, 2.5]}]})
TYPE = {"content_type": "application/json", "accept": "application/json"}
COMPUTE = shapes.InferenceComponentComputeResourceRequirements(
    number_of_cpu_cores_required=0.25, min_memory_required_in_mb=256
)
called = set()
send = BaseClient._make_api_call


def recorded(client, operation, given):
    called.add(operation)
    return send(client, operation, given)


BaseClient._make_api_call = recorded


def numbers(text):
    return json.loads(text)["outputs"][0]["data"]


def doubled(endpoint, **more):
    return numbers(endpoint.invoke(body=REQUEST, **TYPE, **more).body.read())


def variant(**more):
    settings = {"model_name": NAME, "initial_instance_count": 1, "instance_type": "ml.m5.large", **more}
    return shapes.ProductionVariant(variant_name="all", **{k: v for k, v in settings.items() if v is not None})


def deployed(name, config):
    endpoint = Endpoint.create(endpoint_name=name, endpoint_config_name=config)
    endpoint.wait_for_status("InService", poll=1)
    return endpoint


def gone(endpoint):
    endpoint.delete()
    endpoint.wait_for_delete(poll=1)


def updates():
    capture = shapes.DataCaptureConfig(
        enable_capture=True,
        initial_sampling_percentage=100,
        destination_s3_uri=URI + "captured",
        capture_options=[shapes.CaptureOption(capture_mode="InputAndOutput")],
    )
    config = EndpointConfig.create(
        endpoint_config_name=NAME, production_variants=[variant()], data_capture_config=capture
    )
    EndpointConfig.create(endpoint_config_name="v3h-heavy", production_variants=[variant(initial_variant_weight=2.0)])
    found = EndpointConfig.get(endpoint_config_name=NAME).data_capture_config
    proven("EndpointConfig with a DataCaptureConfig", found.destination_s3_uri == URI + "captured")
    names = {each.endpoint_config_name for each in EndpointConfig.get_all(name_contains="v3h-")}
    proven("EndpointConfig.get_all", names == {NAME, "v3h-heavy"}, str(names))
    endpoint = deployed(NAME, NAME)
    answers("Endpoint.invoke", lambda: doubled(endpoint), [2.0, 5.0])
    # Endpoint.invoke_with_response_stream of sagemaker-core 2.27.0 cannot read event streams, so boto3 does it.
    events = runtime.invoke_endpoint_with_response_stream(EndpointName=NAME, Body=REQUEST)["Body"]
    text = b"".join(event["PayloadPart"]["Bytes"] for event in events)
    proven("InvokeEndpointWithResponseStream", numbers(text) == [2.0, 5.0], str(text))
    # The SDK omits members with the value 0.
    policy = shapes.BlueGreenUpdatePolicy(
        traffic_routing_configuration=shapes.TrafficRoutingConfig(type="ALL_AT_ONCE", wait_interval_in_seconds=1)
    )
    endpoint.endpoint_config_name = "v3h-heavy"
    endpoint.update(deployment_config=shapes.DeploymentConfig(blue_green_update_policy=policy))
    endpoint.wait_for_status("InService", poll=1)
    found = (endpoint.endpoint_config_name, endpoint.production_variants[0].current_weight)
    proven("Endpoint.update with a DeploymentConfig", found == ("v3h-heavy", 2.0), str(found))
    endpoint.update_weights_and_capacities([shapes.DesiredWeightAndCapacity(variant_name="all", desired_weight=0.5)])
    endpoint.wait_for_status("InService", poll=1)
    weight = endpoint.production_variants[0].current_weight
    proven("Endpoint.update_weights_and_capacities", weight == 0.5, str(weight))
    gone(endpoint)
    config.delete()


def components():
    EndpointConfig.create(
        endpoint_config_name="v3h-shared", execution_role_arn=ROLE, production_variants=[variant(model_name=None)]
    )
    endpoint = deployed("v3h-shared", "v3h-shared")
    given = {"model_name": NAME, "compute_resource_requirements": COMPUTE}
    component = InferenceComponent.create(
        inference_component_name="v3h-component",
        endpoint_name="v3h-shared",
        variant_name="all",
        specification=shapes.InferenceComponentSpecification(**given),
        runtime_config=shapes.InferenceComponentRuntimeConfig(copy_count=1),
    )
    component.wait_for_status("InService", poll=1)
    answers("InferenceComponent", lambda: doubled(endpoint, inference_component_name="v3h-component"), [2.0, 5.0])
    names = [each.inference_component_name for each in InferenceComponent.get_all(endpoint_name_equals="v3h-shared")]
    proven("InferenceComponent.get_all", names == ["v3h-component"], str(names))
    larger = shapes.InferenceComponentComputeResourceRequirements(
        number_of_cpu_cores_required=0.25, min_memory_required_in_mb=300
    )
    changed = dict(given, compute_resource_requirements=larger)
    component.update(specification=shapes.InferenceComponentSpecification(**changed))
    component.wait_for_status("InService", poll=1)
    memory = component.specification.compute_resource_requirements.min_memory_required_in_mb
    proven("InferenceComponent.update", memory == 300, str(memory))
    component.update_runtime_configs(shapes.InferenceComponentRuntimeConfig(copy_count=2))
    component.wait_for_status("InService", poll=1)
    copies = component.runtime_config.desired_copy_count
    proven("InferenceComponent.update_runtime_configs", copies == 2, str(copies))
    component.delete()
    component.wait_for_delete(poll=1)
    gone(endpoint)


def kinds():
    """Tests a serverless, a multi-model and an asynchronous endpoint."""
    # The SDK's resource spells MemorySizeInMB differently from the service's model, and boto3 rejects it.
    settings = {"MemorySizeInMB": 2048, "MaxConcurrency": 2}
    serverless = {"VariantName": "all", "ModelName": NAME, "ServerlessConfig": settings}
    sagemaker.create_endpoint_config(EndpointConfigName="v3h-serverless", ProductionVariants=[serverless])
    endpoint = deployed("v3h-serverless", "v3h-serverless")
    answers("a serverless endpoint", lambda: doubled(endpoint), [2.0, 5.0])
    gone(endpoint)

    container = shapes.ContainerDefinition(image=IMAGE, model_data_url=URI + "models/", mode="MultiModel")
    Model.create(model_name="v3h-many", execution_role_arn=ROLE, primary_container=container)
    EndpointConfig.create(endpoint_config_name="v3h-many", production_variants=[variant(model_name="v3h-many")])
    endpoint = deployed("v3h-many", "v3h-many")
    answers("a multi-model endpoint", lambda: doubled(endpoint, target_model="model.tar.gz"), [2.0, 5.0])
    gone(endpoint)

    output = shapes.AsyncInferenceOutputConfig(s3_output_path=URI + "out")
    EndpointConfig.create(
        endpoint_config_name="v3h-queued",
        production_variants=[variant()],
        async_inference_config=shapes.AsyncInferenceConfig(output_config=output),
    )
    endpoint = deployed("v3h-queued", "v3h-queued")
    place = endpoint.invoke_async(input_location=URI + "in/one", **TYPE).output_location
    key = place[len(URI) :]
    s3.get_waiter("object_exists").wait(Bucket=BUCKET, Key=key, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    found = numbers(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    proven("Endpoint.invoke_async", found == [2.0, 5.0], str(found))
    gone(endpoint)


def jobs():
    def job(name):
        source = shapes.TransformDataSource(
            s3_data_source=shapes.TransformS3DataSource(s3_data_type="S3Prefix", s3_uri=URI + "in")
        )
        return TransformJob.create(
            transform_job_name=name,
            model_name=NAME,
            transform_input=shapes.TransformInput(data_source=source, content_type="application/json"),
            transform_output=shapes.TransformOutput(s3_output_path=URI + "transformed"),
            transform_resources=shapes.TransformResources(instance_type="ml.m5.large", instance_count=1),
        )

    first, second = job("v3h-job"), job("v3h-stopped")
    end = "Stopped"
    try:
        second.stop()
    except ClientError as error:
        end = "Completed"
        proven("TransformJob.stop of an ended job", "only one that is InProgress" in str(error), str(error))
    first.wait(poll=1)
    sagemaker.get_waiter("transform_job_completed_or_stopped").wait(TransformJobName="v3h-stopped")
    found = second.refresh().transform_job_status
    proven("TransformJob.stop", found == end, found)
    found = numbers(s3.get_object(Bucket=BUCKET, Key="transformed/one.out")["Body"].read())
    proven("TransformJob", (first.transform_job_status, found) == ("Completed", [2.0, 5.0]), str(found))
    names = {each.transform_job_name for each in TransformJob.get_all(name_contains="v3h-")}
    proven("TransformJob.get_all", names == {"v3h-job", "v3h-stopped"}, str(names))


s3.create_bucket(Bucket=BUCKET)
for key in ("model.tar.gz", "models/model.tar.gz"):
    s3.upload_fileobj(io.BytesIO(archive(doubling)), BUCKET, key)
s3.put_object(Bucket=BUCKET, Key="in/one", Body=REQUEST)
made = Model.create(
    model_name=NAME,
    execution_role_arn=ROLE,
    primary_container=shapes.ContainerDefinition(image=IMAGE, model_data_url=URI + "model.tar.gz"),
)
arn = made.get_name() and sagemaker.describe_model(ModelName=NAME)["ModelArn"]
Tag.add_tags(resource_arn=arn, tags=[shapes.Tag(key="k", value="v")])
tags = [(each.key, each.value) for each in Tag.get_all(resource_arn=arn)]
proven("Tag.add_tags and get_all", tags == [("k", "v")], str(tags))
Tag.delete_tags(resource_arn=arn, tag_keys=["k"])
tags = list(Tag.get_all(resource_arn=arn))
proven("Tag.delete_tags", tags == [], str(tags))
updates()
components()
kinds()
jobs()
names = {each.model_name for each in Model.get_all(name_contains="v3h-")}
proven("Model.get_all", names == {NAME, "v3h-many"}, str(names))
left = [each.endpoint_name for each in Endpoint.get_all(name_contains="v3h-")]
proven("Endpoint.get_all", left == [], str(left))
made.delete()
missing = sorted(set(sys.argv[1:]) - called)
proven("the SDK has called every operation", missing == [], str(missing))
finish()
