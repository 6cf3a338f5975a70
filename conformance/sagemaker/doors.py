"""An endpoint that is stopped and started by the platform's own doors, as the real boto3 sees it.

python doors.py deploy|stopped|clean
"""

import sys

from archives import archive
from statements import IMAGE, ROLE, answers, finish, refused, runtime, s3, sagemaker

NAME = "doors"
CONFIG = """
name: "twice" backend: "python"
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""
MODEL = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        found = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x * 2)]) for x in found]
"""
BODY = '{"inputs":[{"name":"X","shape":[2],"datatype":"FP32","data":[1,2]}]}'


def invoke():
    reply = runtime.invoke_endpoint(EndpointName=NAME, ContentType="application/json", Body=BODY)
    return reply["Body"].read().count(b"4.0")


def status():
    return sagemaker.describe_endpoint(EndpointName=NAME)["EndpointStatus"]


def deploy():
    s3.create_bucket(Bucket=NAME)
    files = {"twice/config.pbtxt": CONFIG, "twice/1/model.py": MODEL}
    s3.put_object(Bucket=NAME, Key="twice.tar.gz", Body=archive(files))
    container = {
        "Image": IMAGE,
        "ModelDataUrl": "s3://%s/twice.tar.gz" % NAME,
        "Environment": {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "twice"},
    }
    sagemaker.create_model(ModelName=NAME, ExecutionRoleArn=ROLE, PrimaryContainer=container)
    variant = {
        "VariantName": "AllTraffic",
        "ModelName": NAME,
        "InstanceType": "ml.m5.large",
        "InitialInstanceCount": 1,
    }
    sagemaker.create_endpoint_config(EndpointConfigName=NAME, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=NAME, EndpointConfigName=NAME)
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=NAME)
    answers("an endpoint answers", invoke, 1)


def stopped():
    answers("an endpoint that is stopped is OutOfService", status, "OutOfService")
    refused("and says so to who invokes it", "ValidationError", "^Endpoint doors of account .* is stopped", invoke)
    listed = sagemaker.list_endpoints(StatusEquals="OutOfService")["Endpoints"]
    answers("it is listed by that state", lambda: [each["EndpointName"] for each in listed], [NAME])


def clean():
    answers("an endpoint that was started again answers as before", invoke, 1)
    sagemaker.delete_endpoint(EndpointName=NAME)
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=NAME)


{"deploy": deploy, "stopped": stopped, "clean": clean}[sys.argv[1]]()
finish()
