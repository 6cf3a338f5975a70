"""An endpoint that is stopped and started by the platform's own doors, as the real boto3 sees it.

python doors.py deploy|stopped|clean
"""

import sys

from archives import TWICE_BODY, archive, twice
from statements import IMAGE, ROLE, answers, finish, refused, runtime, s3, sagemaker

NAME = "doors"


def invoke():
    reply = runtime.invoke_endpoint(EndpointName=NAME, ContentType="application/json", Body=TWICE_BODY)
    return reply["Body"].read().count(b"4.0")


def status():
    return sagemaker.describe_endpoint(EndpointName=NAME)["EndpointStatus"]


def deploy():
    s3.create_bucket(Bucket=NAME)
    s3.put_object(Bucket=NAME, Key="twice.tar.gz", Body=archive(twice))
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
