"""Tests the workflow of AWS's multi-model articles with boto3 and the sagemaker SDK v2.

    python workflow.py deploy|after-restart|sdk|clean

Settings come from the environment that `galatea env` prints. Each check prints a line; after a failed
check the others still run, and the exit code is 1. `deploy` leaves the endpoint `conformance-mme` in service for `after-restart`.
"""

import contextlib
import io
import json
import re
import sys
import time

import boto3
from archives import archive
from botocore.exceptions import ClientError, WaiterError
from statements import (
    BUCKET,
    IMAGE,
    POLL_SECONDS,
    ROLE,
    answers,
    eventually,
    finish,
    proven,
    refused,
    runtime,
    s3,
    sagemaker,
)

PREFIX = "ensembles/"
ENDPOINT = "conformance-mme"

STEP = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", (%s).astype(np.float32))]))
        return responses
"""
STEP_CONFIG = """
name: "%s"
backend: "python"
max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
ENSEMBLE_CONFIG = """
name: "ensemble"
platform: "ensemble"
max_batch_size: 8
input [ { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [
  { model_name: "preprocess" model_version: -1 input_map { key: "X" value: "INPUT" } output_map { key: "Y" value: "a" } },
  { model_name: "model" model_version: -1 input_map { key: "X" value: "a" } output_map { key: "Y" value: "b" } },
  { model_name: "postprocess" model_version: -1 input_map { key: "X" value: "b" } output_map { key: "Y" value: "OUTPUT" } }
] }
"""


def ensemble(factor, initialize=""):
    """Returns a repository that computes (x + 1) * factor - 2 with an ensemble of three Python models."""
    files = {"ensemble/config.pbtxt": ENSEMBLE_CONFIG, "ensemble/1/.keep": ""}
    for name, expression in (("preprocess", "x + 1"), ("model", "x * %s" % factor), ("postprocess", "x - 2")):
        files[name + "/config.pbtxt"] = STEP_CONFIG % name
        files[name + "/1/model.py"] = STEP % expression + initialize
    return archive(files)


def put(name, factor, initialize=""):
    s3.upload_fileobj(io.BytesIO(ensemble(factor, initialize)), BUCKET, PREFIX + name)


def body(values):
    return json.dumps({"inputs": [{"name": "INPUT", "shape": [1, len(values)], "datatype": "FP32", "data": values}]})


def invoke(target, values=(1.0, 2.0), endpoint=ENDPOINT):
    reply = runtime.invoke_endpoint(
        EndpointName=endpoint, ContentType="application/octet-stream", Body=body(list(values)), TargetModel=target
    )
    return json.loads(reply["Body"].read())["outputs"][0]["data"]


def create(name, container, config=None):
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer=dict({"Image": IMAGE}, **container))
    sagemaker.create_endpoint_config(
        EndpointConfigName=name,
        ProductionVariants=[
            {
                "InstanceType": "ml.g4dn.4xlarge",
                "InitialVariantWeight": 1,
                "InitialInstanceCount": 1,
                "ModelName": name,
                "VariantName": "AllTraffic",
            }
        ],
    )
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)


def delete(name):
    sagemaker.delete_model(ModelName=name)
    sagemaker.delete_endpoint_config(EndpointConfigName=name)
    sagemaker.delete_endpoint(EndpointName=name)


def deploy():
    s3.create_bucket(Bucket=BUCKET)
    put("a.tar.gz", 10)
    put("team/b c.tar.gz", 20)
    create(ENDPOINT, {"Mode": "MultiModel", "ModelDataUrl": "s3://%s/%s" % (BUCKET, PREFIX)})
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=ENDPOINT)
    told = time.time()
    late = told - sagemaker.describe_endpoint(EndpointName=ENDPOINT)["LastModifiedTime"].timestamp()
    # The waiter sleeps for 30 s between two polls.
    proven("the waiter returns when the endpoint is in service, not at the next poll", late < 15, "%.2f s" % late)

    started = time.time()
    answers("a cold ensemble responds", lambda: invoke("a.tar.gz"), [18.0, 28.0])
    cold = time.time() - started
    started = time.time()
    invoke("a.tar.gz")
    print("    cold %.0f ms, warm %.1f ms" % (cold * 1000, (time.time() - started) * 1000))
    answers("a target model may have a slash and a space", lambda: invoke("team/b c.tar.gz"), [38.0, 58.0])
    binary()

    put("later.tar.gz", 3)
    answers("a model is added by uploading its object", lambda: invoke("later.tar.gz"), [4.0, 7.0])
    put("later.tar.gz", 5)
    answers("a replaced object is loaded again", lambda: invoke("later.tar.gz"), [8.0, 13.0])
    s3.delete_object(Bucket=BUCKET, Key=PREFIX + "later.tar.gz")
    missing = r"^Failed to download model data\(bucket: %s, key: %slater.tar.gz\)" % (BUCKET, PREFIX)
    refused("a model is deleted by deleting its object", "ValidationError", missing, lambda: invoke("later.tar.gz"))
    put("later.tar.gz", 7)
    answers("a model is available again when its object is put again", lambda: invoke("later.tar.gz"), [12.0, 19.0])

    failures()
    duplicates()
    metrics()
    logs()


def binary():
    import numpy as np
    import tritonclient.http as http_client

    data = http_client.InferInput("INPUT", [1, 2], "FP32")
    data.set_data_from_numpy(np.array([[1, 2]], np.float32), binary_data=True)
    output = http_client.InferRequestedOutput("OUTPUT", binary_data=True)
    request, header_length = http_client.InferenceServerClient.generate_request_body([data], outputs=[output])
    prefix = "application/vnd.sagemaker-triton.binary+json;json-header-size="
    reply = runtime.invoke_endpoint(
        EndpointName=ENDPOINT, ContentType=prefix + str(header_length), Body=request, TargetModel="a.tar.gz"
    )
    length = int(reply["ContentType"][len(prefix) :])
    result = http_client.InferenceServerClient.parse_response_body(reply["Body"].read(), header_length=length)
    proven("binary tensors are accepted and returned", result.as_numpy("OUTPUT").tolist() == [[18.0, 28.0]])


def failures():
    put("raises.tar.gz", 1, "\n    def initialize(self, args):\n        raise RuntimeError('no weights here')\n")
    answer = refused(
        "an exception in initialize is a ModelError with the message",
        "ModelError",
        "no weights here",
        lambda: invoke("raises.tar.gz"),
    )
    proven(
        "a ModelError has the container's status",
        answer.get("OriginalStatusCode") == 400,
        str(answer.get("OriginalStatusCode")),
    )
    s3.put_object(Bucket=BUCKET, Key=PREFIX + "noise.tar.gz", Body=b"this is no archive" * 100)
    refused("an invalid archive is a ModelError that says so", "ModelError", "archive", lambda: invoke("noise.tar.gz"))
    broken = ensemble(1)[:200]
    s3.put_object(Bucket=BUCKET, Key=PREFIX + "broken.tar.gz", Body=broken)
    refused(
        "a truncated archive is a ModelError that says so", "ModelError", "ends before", lambda: invoke("broken.tar.gz")
    )
    put("broken.tar.gz", 2)
    answers("a failed load is not remembered", lambda: invoke("broken.tar.gz"), [2.0, 4.0])
    log_text = r"#logEventViewer:group=/aws/sagemaker/Endpoints/%s in account \d{12} for more information" % ENDPOINT
    bad = lambda: runtime.invoke_endpoint(EndpointName=ENDPOINT, Body=b"{}", TargetModel="a.tar.gz")
    refused(
        "an invalid request is a client error of the model",
        "ModelError",
        r"^Received client error \(400\) from primary.*" + log_text,
        bad,
    )
    no_target = lambda: runtime.invoke_endpoint(EndpointName=ENDPOINT, Body=b"{}")
    refused("a multi-model endpoint requires a target model", "ValidationError", "requires a target model", no_target)
    nobody = lambda: runtime.invoke_endpoint(EndpointName="nobody", Body=b"{}")
    refused(
        "an unknown endpoint is an error", "ValidationError", r"^Endpoint nobody of account \d{12} not found\.$", nobody
    )
    large = lambda: runtime.invoke_endpoint(EndpointName=ENDPOINT, Body=b"x" * 7000000, TargetModel="a.tar.gz")
    try:
        large()
    except ClientError as error:
        proven("a body over 6 MB", error.response["ResponseMetadata"]["HTTPStatusCode"] == 413)
    else:
        proven("a body over 6 MB", False)


def duplicates():
    again = lambda: sagemaker.create_model(ModelName=ENDPOINT, ExecutionRoleArn=ROLE, PrimaryContainer={"Image": IMAGE})
    refused("an existing model is an error", "ValidationException", "Cannot create already existing model", again)
    again = lambda: sagemaker.create_endpoint(EndpointName=ENDPOINT, EndpointConfigName=ENDPOINT)
    refused("an existing endpoint is an error", "ValidationException", "Cannot create already existing endpoint", again)
    absent = lambda: sagemaker.describe_endpoint(EndpointName="nobody")
    refused("a missing endpoint is an error", "ValidationException", "Could not find", absent)
    other = lambda: sagemaker.create_model(
        ModelName="other", ExecutionRoleArn=ROLE, PrimaryContainer={"Image": "mine:1"}
    )
    refused("an image that needs a container engine is rejected", "ValidationException", "container engine", other)
    create("conformance-broken", {"ModelDataUrl": "s3://%s/nothing.tar.gz" % BUCKET})
    with contextlib.suppress(WaiterError):
        sagemaker.get_waiter("endpoint_in_service").wait(EndpointName="conformance-broken")
    reply = sagemaker.describe_endpoint(EndpointName="conformance-broken")
    text = reply.get("FailureReason", "")
    proven(
        "a failed endpoint has a FailureReason",
        reply["EndpointStatus"] == "Failed" and "Failed to download model data" in text,
        text,
    )
    delete("conformance-broken")
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName="conformance-broken")
    proven("a failed endpoint can be deleted", True)


def metrics():
    cloudwatch = boto3.client("cloudwatch")
    now = time.time()
    wanted = {
        "Invocations": ("AWS/SageMaker", "None"),
        "ModelLatency": ("AWS/SageMaker", "Microseconds"),
        "OverheadLatency": ("AWS/SageMaker", "Microseconds"),
        "ModelCacheHit": ("AWS/SageMaker", "None"),
        "ModelLoadingWaitTime": ("AWS/SageMaker", "Microseconds"),
        "ModelDownloadingTime": ("AWS/SageMaker", "Microseconds"),
        "ModelLoadingTime": ("AWS/SageMaker", "Microseconds"),
        "ModelUnloadingTime": ("AWS/SageMaker", "Microseconds"),
        "Invocation4XXErrors": ("AWS/SageMaker", "None"),
        "LoadedModelCount": ("/aws/sagemaker/Endpoints", "None"),
        "MemoryUtilization": ("/aws/sagemaker/Endpoints", "Percent"),
        "DiskUtilization": ("/aws/sagemaker/Endpoints", "Percent"),
    }

    def points_of(name, namespace):
        return cloudwatch.get_metric_statistics(
            Namespace=namespace,
            MetricName=name,
            Dimensions=[{"Name": "EndpointName", "Value": ENDPOINT}, {"Name": "VariantName", "Value": "AllTraffic"}],
            StartTime=now - 3600,
            EndTime=now + 120,
            Period=60,
            Statistics=["Sum", "Average", "SampleCount"],
        )["Datapoints"]

    for name, (namespace, unit) in wanted.items():
        # The usage of instances is sampled every 20 s, and a replaced model is unloaded after the new one is loaded.
        points = eventually(lambda: points_of(name, namespace))
        proven("the metric %s is recorded" % name, points and points[0]["Unit"] == unit, "%d points" % len(points))


def logs():
    client = boto3.client("logs")
    group = "/aws/sagemaker/Endpoints/" + ENDPOINT
    streams = client.describe_log_streams(logGroupName=group)["logStreams"]
    proven(
        "each instance has a log stream", streams and re.match(r"AllTraffic/i-[0-9a-f]+$", streams[0]["logStreamName"])
    )
    events = client.get_log_events(logGroupName=group, logStreamName=streams[0]["logStreamName"], startFromHead=True)
    lines = [event["message"] for event in events["events"]]
    proven(
        "the log stream has the container's lines",
        any("successfully loaded 'a.tar.gz'" in line for line in lines),
        lines[:3],
    )


def after_restart():
    reply = sagemaker.describe_endpoint(EndpointName=ENDPOINT)
    proven("the endpoint is in service after kill -9", reply["EndpointStatus"] == "InService", reply["EndpointStatus"])
    answers("the endpoint responds after kill -9", lambda: invoke("a.tar.gz"), [18.0, 28.0])
    answers("every object exists after kill -9", lambda: invoke("team/b c.tar.gz"), [38.0, 58.0])


def sdk():
    import sagemaker as sdk_module
    from sagemaker.model import Model
    from sagemaker.multidatamodel import MultiDataModel
    from sagemaker.predictor import Predictor

    session = sdk_module.Session()
    bucket = session.default_bucket()
    proven("default_bucket()", bool(bucket), bucket)
    role = sdk_module.get_execution_role(session)
    proven("get_execution_role()", role.startswith("arn:aws:iam::"), role)
    s3.put_object(Bucket=bucket, Key="single/model.tar.gz", Body=ensemble(4))
    environment = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "ensemble"}
    uri = "s3://%s/single/model.tar.gz" % bucket
    model = Model(
        image_uri=IMAGE, model_data=uri, role=role, env=environment, predictor_cls=Predictor, sagemaker_session=session
    )
    predictor = model.deploy(
        initial_instance_count=1, instance_type="ml.m5.xlarge", endpoint_name="conformance-sdk", wait=False
    )
    session.wait_for_endpoint("conformance-sdk", poll=POLL_SECONDS)
    answer = json.loads(predictor.predict(body([1.0]), initial_args={"ContentType": "application/json"}))
    proven("Model deploys and predicts", answer["outputs"][0]["data"] == [6.0])
    predictor.delete_model()
    predictor.delete_endpoint()

    many = MultiDataModel(
        name="conformance-sdk-many",
        model_data_prefix="s3://%s/many/" % bucket,
        image_uri=IMAGE,
        role=role,
        sagemaker_session=session,
        predictor_cls=Predictor,
    )
    predictor = many.deploy(
        initial_instance_count=1, instance_type="ml.m5.xlarge", endpoint_name="conformance-sdk-many", wait=False
    )
    session.wait_for_endpoint("conformance-sdk-many", poll=POLL_SECONDS)
    many.add_model(model_data_source=uri, model_data_path="x/model.tar.gz")
    proven("MultiDataModel.list_models", list(many.list_models()) == ["x/model.tar.gz"])
    answer = json.loads(predictor.predict(body([1.0]), target_model="x/model.tar.gz"))
    proven("MultiDataModel deploys and predicts", answer["outputs"][0]["data"] == [6.0])
    predictor.delete_model()
    predictor.delete_endpoint()


def clean():
    delete(ENDPOINT)
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=ENDPOINT)
    proven(
        "the endpoint is deleted", ENDPOINT not in [e["EndpointName"] for e in sagemaker.list_endpoints()["Endpoints"]]
    )


{"deploy": deploy, "after-restart": after_restart, "sdk": sdk, "clean": clean}[sys.argv[1]]()
finish()
