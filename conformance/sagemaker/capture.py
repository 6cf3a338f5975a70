"""Tests data capture and shadow variants with boto3 and the sagemaker SDK v2.

    python capture.py mirrored|begin|killed

The shadow variant's responses are ten times those of the production variant.
"""

import base64
import datetime
import functools
import json
import re
import sys
import time

import boto3
from archives import archive
from statements import IMAGE, POLL_SECONDS, ROLE, answers, finish, proven, refused, runtime, s3, sagemaker

BUCKET = "conformance-captured"
ENDPOINT = "conformance-captured"
CONFIG = """
name: "model"
backend: "python"
max_batch_size: 0
input [ { name: "IN" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
MODEL = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "IN").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", each * np.float32(%d))]) for each in inputs]
"""
KEY = re.compile(r"^%s/(\w+)/\d{4}/\d\d/\d\d/\d\d/\d\d-\d\d-\d{3}-[0-9a-f-]{36}\.jsonl$" % ENDPOINT)
TYPE = "application/json"
CAPTURE = {
    "EnableCapture": True,
    "InitialSamplingPercentage": 100,
    "DestinationS3Uri": "s3://%s/boto3" % BUCKET,
    "CaptureOptions": [{"CaptureMode": "InputAndOutput"}],
    "CaptureContentTypeHeader": {"JsonContentTypes": [TYPE]},
}


def body(number):
    return json.dumps({"inputs": [{"name": "IN", "shape": [1], "datatype": "FP32", "data": [number]}]})


def answered(text):
    return json.loads(text)["outputs"][0]["data"][0]


def variant(name, model, weight=1):
    return {
        "VariantName": name,
        "ModelName": model,
        "InstanceType": "ml.m5.large",
        "InitialInstanceCount": 1,
        "InitialVariantWeight": weight,
    }


def configure(name, shadows=(), production=("live",), **more):
    sagemaker.create_endpoint_config(
        EndpointConfigName=name,
        ProductionVariants=[variant(each, "once") for each in production],
        **({"ShadowProductionVariants": [variant(each, "tenfold") for each in shadows]} if shadows else {}),
        **more,
    )


def ask(number, **more):
    reply = runtime.invoke_endpoint(EndpointName=ENDPOINT, ContentType=TYPE, Body=body(number), **more)
    return reply["InvokedProductionVariant"], answered(reply["Body"].read())


def settled():
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=ENDPOINT)
    return sagemaker.describe_endpoint(EndpointName=ENDPOINT)


def records(prefix):
    """Returns the records of each variant's files; each line must be a record."""
    found = {}
    for entry in s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix + "/").get("Contents", []):
        named = KEY.match(entry["Key"][len(prefix) + 1 :])
        if not proven("a file has its expected key", named is not None, entry["Key"]):
            continue
        text = s3.get_object(Bucket=BUCKET, Key=entry["Key"])["Body"].read().decode()
        found.setdefault(named[1], []).extend(json.loads(line) for line in text.splitlines())
    return found


def written(prefix, counts):
    """Returns `records` once each variant has that many."""
    for _ in range(600):
        found = s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix + "/").get("Contents", [])
        variants = {KEY.match(entry["Key"][len(prefix) + 1 :])[1] for entry in found}
        if variants == set(counts) and {name: len(each) for name, each in records(prefix).items()} == counts:
            break
        time.sleep(POLL_SECONDS)
    return records(prefix)


def sum_of(name):
    now = datetime.datetime.now(datetime.timezone.utc)
    points = boto3.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/SageMaker",
        MetricName="Invocations",
        Dimensions=[{"Name": "EndpointName", "Value": ENDPOINT}, {"Name": "VariantName", "Value": name}],
        StartTime=now - datetime.timedelta(hours=1),
        EndTime=now + datetime.timedelta(hours=1),
        Period=86400,
        Statistics=["Sum"],
    )["Datapoints"]
    return sum(point["Sum"] for point in points)


def limits():
    one = "one production variant and one shadow variant only"
    refuses = functools.partial(refused, code="ValidationException")
    refuses("two shadows", pattern=one, call=lambda: configure("x", shadows=("s", "t")))
    refuses("a shadow of two variants", pattern=one, call=lambda: configure("x", shadows=("s",), production=("a", "b")))
    text = r'^The variant name "live" was non-unique within the request\.$'
    refuses("a shadow of the same name", pattern=text, call=lambda: configure("x", shadows=("live",)))
    for name, pattern in (
        (
            "many",
            r'^Shadow variants do not support multi-model endpoints: model "many" has a container in MultiModel mode\.$',
        ),
        ("piped", r'^Shadow variants do not support multi-container endpoints: model "piped" has 2 containers\.$'),
    ):
        for of, production, shadow in (("production", name, "once"), ("shadow", "once", name)):
            both = {
                "ProductionVariants": [variant("live", production)],
                "ShadowProductionVariants": [variant("dark", shadow)],
            }
            refuses(
                "a shadow, with %s as the %s variant's model" % (name, of),
                pattern=pattern,
                call=lambda: sagemaker.create_endpoint_config(EndpointConfigName="x", **both),
            )
    refuses(
        "a weight out of the service's float range",
        pattern=r'^The weight of variant "live" has to be a finite number from 0 to 3\.40\d+e\+38, not 1e\+39\.$',
        call=lambda: sagemaker.create_endpoint_config(
            EndpointConfigName="x", ProductionVariants=[variant("live", "once", 1e39)]
        ),
    )
    keyed = dict(CAPTURE, KmsKeyId="alias/mine")
    refuses("a key", pattern="KmsKeyId alias/mine", call=lambda: configure("x", DataCaptureConfig=keyed))
    for wrong, pattern in (
        ({"InitialSamplingPercentage": 101}, "less than or equal to 100"),
        ({"CaptureOptions": [{"CaptureMode": "Neither"}]}, "Input, Output, InputAndOutput"),
        ({"DestinationS3Uri": "bucket"}, "regular expression pattern"),
    ):
        capture = dict(CAPTURE, **wrong)
        refuses(
            "wrong: %s" % next(iter(wrong)), pattern=pattern, call=lambda: configure("x", DataCaptureConfig=capture)
        )


def deployed():
    s3.create_bucket(Bucket=BUCKET)
    for name, factor in (("once", 1), ("tenfold", 10)):
        files = {"model/config.pbtxt": CONFIG, "model/1/model.py": MODEL % factor}
        s3.put_object(Bucket=BUCKET, Key="models/%s.tar.gz" % name, Body=archive(files))
        container = {"Image": IMAGE, "ModelDataUrl": "s3://%s/models/%s.tar.gz" % (BUCKET, name)}
        sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer=container)
    single = {"Image": IMAGE, "ModelDataUrl": "s3://%s/models/once.tar.gz" % BUCKET}
    several = {"Image": IMAGE, "ModelDataUrl": "s3://%s/models/" % BUCKET, "Mode": "MultiModel"}
    sagemaker.create_model(ModelName="many", ExecutionRoleArn=ROLE, PrimaryContainer=several)
    sagemaker.create_model(ModelName="piped", ExecutionRoleArn=ROLE, Containers=[single, single])
    limits()
    configure("plain")
    configure("both", shadows=("dark",), DataCaptureConfig=CAPTURE)
    found = sagemaker.describe_endpoint_config(EndpointConfigName="both")
    proven(
        "DescribeEndpointConfig returns the shadow variant",
        found["ShadowProductionVariants"] == [variant("dark", "tenfold")],
    )
    proven(
        "DescribeEndpointConfig returns the data capture",
        found["DataCaptureConfig"] == CAPTURE,
        str(found["DataCaptureConfig"]),
    )
    sagemaker.create_endpoint(EndpointName=ENDPOINT, EndpointConfigName="both")
    found = settled()
    summary = {
        "EnableCapture": True,
        "CaptureStatus": "Started",
        "CurrentSamplingPercentage": 100,
        "DestinationS3Uri": CAPTURE["DestinationS3Uri"],
        "KmsKeyId": "",
    }
    proven(
        "DescribeEndpoint returns the data capture",
        found["DataCaptureConfig"] == summary,
        str(found["DataCaptureConfig"]),
    )
    names = [[each["VariantName"] for each in found[of]] for of in ("ProductionVariants", "ShadowProductionVariants")]
    proven("DescribeEndpoint returns the variants and the shadow variant", names == [["live"], ["dark"]], str(names))


def mirrored():
    deployed()
    answers(
        "the production variant responds",
        lambda: [ask(at, InferenceId="i-%d" % at, CustomAttributes="trace=%d" % at) for at in range(10)],
        [("live", float(at)) for at in range(10)],
    )
    text = "Variant dark not found"
    refused("a request cannot name the shadow variant", "ValidationError", text, lambda: ask(1, TargetVariant="dark"))
    resize = [{"VariantName": "dark", "DesiredWeight": 0, "DesiredInstanceCount": 1}]
    sagemaker.update_endpoint_weights_and_capacities(EndpointName=ENDPOINT, DesiredWeightsAndCapacities=resize)
    (shadow,) = settled()["ShadowProductionVariants"]
    proven(
        "the weight of the shadow variant can be changed",
        (shadow["CurrentWeight"], shadow["DesiredWeight"]) == (0.0, 0.0),
    )
    ask(10)
    # Requests to the shadow variant in flight are cancelled with it.
    for _ in range(600):
        if sum_of("dark") == 10:
            break
        time.sleep(POLL_SECONDS)
    sagemaker.update_endpoint(EndpointName=ENDPOINT, EndpointConfigName="plain")
    found = settled()
    gone = "DataCaptureConfig" not in found and "ShadowProductionVariants" not in found
    proven("an update ends data capture and the shadow variant", gone, str(found))
    captured(written("boto3", {"live": 11, "dark": 10}))
    proven(
        "CloudWatch has metrics of both variants",
        (sum_of("live"), sum_of("dark")) == (11, 10),
        str((sum_of("live"), sum_of("dark"))),
    )
    streams = boto3.client("logs").describe_log_streams(logGroupName="/aws/sagemaker/Endpoints/" + ENDPOINT)
    logged = {stream["logStreamName"].split("/")[0] for stream in streams["logStreams"]}
    proven("the shadow variant has logs", logged == {"live", "dark"}, str(logged))
    with_sdk()


def captured(found):
    for name, factor in (("live", 1), ("dark", 10)):
        lines = {each["eventMetadata"].get("inferenceId"): each for each in found.get(name, [])}
        line = lines.get("i-7", {"captureData": {}, "eventMetadata": {}})
        sides = line["captureData"]
        taken = {"observedContentType": TYPE, "mode": "INPUT", "data": body(7), "encoding": "JSON"}
        proven("the captured request of %s" % name, sides.get("endpointInput") == taken, str(sides))
        output = sides.get("endpointOutput", {"data": ""})
        said = {key: output.get(key) for key in ("observedContentType", "mode", "encoding")}
        proven(
            "the captured content type",
            said == {"observedContentType": TYPE, "mode": "OUTPUT", "encoding": "JSON"},
            str(said),
        )
        proven("the captured response", answered(output["data"]) == 7 * factor, output["data"])
        metadata = line["eventMetadata"]
        proven("custom attributes", metadata.get("customAttributes") == ["trace=7"], str(metadata))
        proven("a time", re.match(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", metadata.get("inferenceTime", "")))
        proven("the version of the record's format", line.get("eventVersion") == "0")


def with_sdk():
    """Captures with the SDK's own classes, and reads the captured data as its notebooks do."""
    import sagemaker as sdk_module
    from sagemaker.model_monitor import DataCaptureConfig
    from sagemaker.predictor import Predictor
    from sagemaker.s3 import S3Downloader

    session = sdk_module.Session()
    session.wait_for_endpoint = functools.partial(session.wait_for_endpoint, poll=POLL_SECONDS)
    predictor = Predictor(ENDPOINT, sagemaker_session=session)
    destination = "s3://%s/sdk" % BUCKET
    predictor.update_data_capture_config(
        DataCaptureConfig(True, 100, destination, json_content_types=["text/none"], sagemaker_session=session)
    )
    answer = predictor.predict(body(3), initial_args={"ContentType": TYPE}, inference_id="by the SDK")
    proven("the SDK's predictor gets a response", answered(answer) == 3)
    predictor.disable_data_capture()
    status = settled()["DataCaptureConfig"]["CaptureStatus"]
    proven("disable_data_capture", status == "Stopped", status)
    predictor.predict(body(4), initial_args={"ContentType": TYPE})
    (record,) = written("sdk", {"live": 1})["live"]
    (place,) = S3Downloader.list(destination, sagemaker_session=session)
    text = S3Downloader.read_file(place, sagemaker_session=session)
    proven("S3Downloader reads the captured data", json.loads(text) == record, text)
    side = record["captureData"]["endpointInput"]
    data = base64.b64decode(side["data"]).decode()
    proven(
        "a content type that is not listed is captured as base64",
        (side["encoding"], data) == ("BASE64", body(3)),
        str(side),
    )
    proven("inference_id", record["eventMetadata"]["inferenceId"] == "by the SDK")


def begin():
    configure("captured", DataCaptureConfig=dict(CAPTURE, DestinationS3Uri="s3://%s/killed" % BUCKET))
    sagemaker.update_endpoint(EndpointName=ENDPOINT, EndpointConfigName="captured")
    settled()
    for at in range(50):
        ask(at)


def killed():
    """Checks that written files are complete and that capture continues; records captured shortly before the kill may be lost."""
    found = settled()["DataCaptureConfig"]
    proven("capture continues", found["CaptureStatus"] == "Started", str(found))
    before = sum(len(lines) for lines in records("killed").values())
    for at in range(20):
        ask(at)
    sagemaker.delete_endpoint(EndpointName=ENDPOINT)
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=ENDPOINT)
    lines = written("killed", {"live": before + 20})["live"]
    proven("all requests since the restart are captured", len(lines) == before + 20, str(len(lines)))


{"mirrored": mirrored, "begin": begin, "killed": killed}[sys.argv[1]]()
finish()
