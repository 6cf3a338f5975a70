"""Checks that the FailureReason of an endpoint that cannot be created says what to do.

    python failures.py [scripts]

`scripts` runs only the rows that need scikit-learn's packages. Each row is one failure, with the texts that its reason must
contain. Endpoints are deleted in every status. The exit code is 1 if a check fails.
"""

import gzip
import io
import json
import re
import sys

import boto3
from archives import DOUBLING, DOUBLING_CONFIG, archive, doubling
from botocore.exceptions import WaiterError
from statements import BUCKET, IMAGE, ROLE, eventually, finish, proven, refused, runtime, s3, sagemaker

LEARN = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-scikit-learn:1.2-1-cpu-py3"
PING = (
    "^The primary container for production variant v did not pass the ping health check. Please check CloudWatch logs"
)
DOWNLOAD = '^Failed to download model data for container "container_1" from URL: "s3://.*ensure that there is an object located at'
EXTRACT = (
    '^Failed to extract model data archive for container "container_1" from URL "s3://.*is a valid tar.gz archive. '
)
REASON_LENGTH_MAX = 1024
logs = boto3.client("logs")


def triton(**files):
    return archive({**doubling, **files})


def python_model(body):
    text = "class TritonPythonModel:\n    def initialize(self, args):\n        %s\n    def execute(self, requests):\n        pass\n"
    return triton(**{"double/1/model.py": text % body})


def script(text):
    return archive({"weights.txt": "1", "code/inference.py": text})


def prefix(uri):
    source = {"S3Uri": uri, "S3DataType": "S3Prefix", "CompressionType": "None"}
    return {"ModelDataSource": {"S3DataSource": source}}


def variables(**environment):
    return {"Environment": environment}


other = {"other/config.pbtxt": DOUBLING_CONFIG.replace("double", "other"), "other/1/model.py": DOUBLING}
ill_config = triton(**{"double/config.pbtxt": 'name: "double" backend: [ "python"'})
large = triton(**{"double/1/weights.bin": b"\0" * 2**20})
# The failure; image, archive (None: no archive), further members of the container; the texts of the reason, in order.
ROWS = (
    ("a missing archive", IMAGE, None, {}, (DOWNLOAD, "key does not exist")),
    ("no such bucket", IMAGE, None, {"ModelDataUrl": "s3://nobody/model.tar.gz"}, (DOWNLOAD, "bucket does not exist")),
    ("an empty prefix", IMAGE, None, prefix("s3://%s/none/" % BUCKET), (DOWNLOAD, "no object under the prefix")),
    ("a text", IMAGE, b"this is no archive", {}, (EXTRACT, "no tar archive")),
    ("a compressed text", IMAGE, gzip.compress(b"this is no archive"), {}, (EXTRACT, "no tar archive")),
    ("half an archive", IMAGE, triton()[:200], {}, (EXTRACT, "ends before its last entry is complete")),
    ("a path out of the archive", IMAGE, archive({"../out": ""}), {}, (EXTRACT, 'a path with ".."')),
    ("no model", IMAGE, archive({"README": ""}), {}, (PING, "no model directory: at its top there must be one")),
    ("two models", IMAGE, triton(**other), {}, (PING, r"2 model directories \(double, other\): set it to the model")),
    (
        "a missing default model",
        IMAGE,
        triton(),
        variables(SAGEMAKER_TRITON_DEFAULT_MODEL_NAME="another"),
        (PING, "DEFAULT_MODEL_NAME another does not exist"),
    ),
    (
        "an invalid configuration",
        IMAGE,
        ill_config,
        {},
        (PING, r"/opt/ml/model/double/config.pbtxt: line 1, column 25"),
    ),
    ("no version", IMAGE, archive({"double/config.pbtxt": DOUBLING_CONFIG}), {}, (PING, "at least one version")),
    (
        "no such backend",
        IMAGE,
        triton(**{"double/config.pbtxt": 'backend: "vllm"'}),
        {},
        (PING, "vLLM is not served by a backend of this server: give"),
    ),
    (
        "a model that raises",
        IMAGE,
        python_model("raise ValueError('no weights here')"),
        {},
        (
            PING,
            r"code 1: failed to load .*ValueError: no weights here, at /opt/ml/model/double/1/model.py\(3\): initialize; last",
        ),
    ),
    (
        "a missing package",
        IMAGE,
        triton(**{"double/1/model.py": "import nowhere_to_be_found"}),
        {},
        (
            PING,
            "code 1: failed to load .*No module named 'nowhere_to_be_found'",
            r"GALATEA_PYTHON_PACKAGES.*sets up\. Raised at /opt/ml/model/double/1/model.py",
        ),
    ),
    (
        "a model that crashes",
        IMAGE,
        python_model("import ctypes; ctypes.string_at(0)"),
        {},
        (PING, "code 1: failed to load .*SIGSEGV"),
    ),
    (
        "no graph",
        IMAGE,
        archive({"m/config.pbtxt": 'backend: "onnxruntime"', "m/1/model.onnx": b"no graph"}),
        {},
        (PING, "code 1: failed to load 'm' .*Protobuf parsing failed"),
    ),
    (
        "a model that is too large",
        IMAGE,
        large,
        variables(GALATEA_MODEL_MEMORY_BYTES="1000000"),
        (PING, "code 1: failed to load .*Out of memory: .*choose a larger InstanceType"),
    ),
)
# Needs the packages of scikit-learn.
SCRIPT_ROWS = (
    (
        "a script that raises",
        LEARN,
        script("def model_fn(path):\n    raise ValueError('no weights here')\n"),
        {},
        (
            PING,
            r"code 1: failed to load .*ValueError: no weights here, at /opt/ml/model/code/inference.py\(2\): model_fn; last",
        ),
    ),
)


def create(name, image, data, more):
    key = "failures/%s.tar.gz" % name
    if data is not None:
        s3.upload_fileobj(io.BytesIO(data), BUCKET, key)
    place = {} if "ModelDataSource" in more else {"ModelDataUrl": "s3://%s/%s" % (BUCKET, key)}
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer={"Image": image, **place, **more})
    configure(name)


def configure(name):
    variant = {"VariantName": "v", "ModelName": name, "InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])


def deploy(name):
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)


def status(name):
    found = sagemaker.describe_endpoint(EndpointName=name)
    return found["EndpointStatus"], found.get("FailureReason", "")


def deleted(statement, name):
    sagemaker.delete_endpoint(EndpointName=name)
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=name)
    text = "^Could not find endpoint"
    refused("%s is deleted" % statement, "ValidationException", text, lambda: status(name))


def reasons(rows):
    for index, (what, image, data, more, said) in enumerate(rows):
        name = "failure-%d" % index
        create(name, image, data, more)
        deploy(name)
        try:
            sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=name)
        except WaiterError:
            pass
        at, reason = status(name)
        says = re.search(".*".join(said), reason, re.S) is not None and len(reason) <= REASON_LENGTH_MAX
        # The path on the platform's machine must not be visible to callers.
        proven(
            "%s: the FailureReason says so" % what,
            at == "Failed" and says and "/instances/i-" not in reason,
            (at, reason),
        )
    for index in range(len(rows)):
        sagemaker.delete_endpoint(EndpointName="failure-%d" % index)
    refused("a failed endpoint can be deleted", "ValidationException", "^Could not find", lambda: wait_for_first())


def wait_for_first():
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName="failure-0")
    status("failure-0")


def refusals():
    code = "ValidationException"
    model = lambda **more: sagemaker.create_model(
        **{"ModelName": "refused", "ExecutionRoleArn": ROLE, "PrimaryContainer": {"Image": IMAGE}, **more}
    )
    call = lambda: model(PrimaryContainer={"Image": "mine:1"})
    refused(
        "an unknown image is rejected with the list of supported ones",
        code,
        "container engine.*sagemaker-tritonserver",
        call,
    )
    call = lambda: model(ExecutionRoleArn="my role of twenty and more letters")
    refused("an invalid role is rejected", code, "executionRoleArn.*failed to satisfy constraint", call)


def deletions():
    """Deletes endpoints in transient states."""
    create("slow", IMAGE, python_model("import time; time.sleep(600)"), {})
    create("quick", IMAGE, triton(), {})
    deploy("slow")
    proven("the endpoint is Creating", status("slow")[0] == "Creating")
    deleted("an endpoint that is Creating can be deleted", "slow")
    deploy("quick")
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName="quick")
    sagemaker.update_endpoint(EndpointName="quick", EndpointConfigName="slow")
    proven("the endpoint is Updating", status("quick")[0] == "Updating")
    deleted("an endpoint that is Updating can be deleted", "quick")


def exceptions():
    """Checks an endpoint in service whose model raises: its log has the location and the request."""
    name = "raises"
    body = "def execute(self, requests):\n        raise ValueError('no such token')"
    text = "class TritonPythonModel:\n    %s\n" % body
    create(name, IMAGE, triton(**{"double/1/model.py": text}), {})
    deploy(name)
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=name)
    asked = json.dumps({"id": "mine", "inputs": [{"name": "X", "shape": [1], "datatype": "FP32", "data": [1]}]})
    call = lambda: runtime.invoke_endpoint(EndpointName=name, ContentType="application/json", Body=asked)
    refused(
        "a model that raises fails its invocation", "ModelError", "ValueError: no such token.*Endpoints/raises", call
    )
    said = eventually(lambda: errors_of(name))
    shown = r"ValueError: no such token\\n\\nAt:\\n .*model.py\(3\): execute.* model=double version=1 instance=double_0 request=mine"
    proven("its log has one ERROR line about it", len(said) == 1 and re.search(shown, said[0]) is not None, said)
    deleted("an endpoint whose model raises can be deleted", name)


def errors_of(name):
    found = logs.filter_log_events(logGroupName="/aws/sagemaker/Endpoints/" + name)["events"]
    return [event["message"] for event in found if re.match(r"E\d{4} .*Failed to process", event["message"])]


s3.create_bucket(Bucket=BUCKET)
if sys.argv[1:] == ["scripts"]:
    reasons(SCRIPT_ROWS)
else:
    refusals()
    exceptions()
    reasons(ROWS)
    deletions()
finish()
