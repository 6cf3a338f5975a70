"""Tests every branch of an SDK on the code or the text of an error: the platform's errors must have the expected ones.

python branches.py v2|v3|waiters

`v2` and `v3` call the functions of the SageMaker SDK with such a branch; `waiters` checks the errors that botocore's waiters match. Settings
come from the environment that `galatea env --proxy` prints.
"""

import io
import logging
import sys
import tempfile

import boto3
from archives import archive, doubling
from botocore.exceptions import ClientError
from statements import BUCKET, IMAGE, POLL_SECONDS, ROLE, finish, proven, s3, sagemaker

NAME = "branches"
ABSENT = {"EndpointName": "absent"}
VARIANT = {"VariantName": "AllTraffic", "ModelName": NAME, "InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
logs = boto3.client("logs")


def place(name, call, expected):
    """Checks a branch of an SDK by the result of the call, or by the name of the exception that the SDK raises for the platform's error."""
    try:
        found = call()
    except Exception as error:
        found = type(error).__name__
    proven(name, found == expected, "" if found == expected else "%r, not %r" % (found, expected))


def prepare():
    """Creates a model, an endpoint configuration, and a model that cannot start."""
    s3.create_bucket(Bucket=BUCKET)
    s3.upload_fileobj(io.BytesIO(archive(doubling)), BUCKET, "branches/model.tar.gz")
    s3.upload_fileobj(io.BytesIO(archive({"double/config.pbtxt": "nonsense"})), BUCKET, "branches/broken.tar.gz")
    s3.put_object(Bucket=BUCKET, Key="branches/deep/object", Body=b"here")
    for name, file in ((NAME, "model"), ("broken", "broken")):
        container = {"Image": IMAGE, "ModelDataUrl": "s3://%s/branches/%s.tar.gz" % (BUCKET, file)}
        sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer=container)
        sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[dict(VARIANT, ModelName=name)])
    sagemaker.create_endpoint(EndpointName="broken", EndpointConfigName="broken")


def existing():
    """Creates resources that exist already."""
    container = {"Image": IMAGE, "ModelDataUrl": "s3://%s/branches/model.tar.gz" % BUCKET}
    return {
        "CreateModel": lambda: sagemaker.create_model(
            ModelName=NAME, ExecutionRoleArn=ROLE, PrimaryContainer=container
        ),
        "CreateEndpointConfig": lambda: sagemaker.create_endpoint_config(
            EndpointConfigName=NAME, ProductionVariants=[VARIANT]
        ),
        "CreateEndpoint": lambda: sagemaker.create_endpoint(EndpointName="broken", EndpointConfigName=NAME),
    }


def absent():
    """Requests resources that do not exist."""
    return {
        "DescribeModel": lambda: sagemaker.describe_model(ModelName="absent"),
        "DescribeEndpointConfig": lambda: sagemaker.describe_endpoint_config(EndpointConfigName="absent"),
        "DescribeEndpoint": lambda: sagemaker.describe_endpoint(**ABSENT),
        "DescribeInferenceComponent": lambda: sagemaker.describe_inference_component(InferenceComponentName="absent"),
    }


def live_log(module):
    """Returns the result of one poll of an endpoint whose logs are followed."""

    def look(name):
        paginator = logs.get_paginator("filter_log_events")
        return module._live_logging_deploy_done(sagemaker, name, paginator, {"MaxItems": 10}, POLL_SECONDS)

    return look


def common(module, session, folder_of):
    for operation, call in existing().items():
        place(
            "_create_resource: %s of an existing resource" % operation,
            lambda call=call: module._create_resource(call),
            False,
        )
    arguments = {"name": NAME, "role": ROLE, "container_defs": [{"Image": IMAGE}]}
    place("Session.create_model of an existing model", lambda: session.create_model(**arguments), NAME)
    for operation, call in absent().items():
        entity = lambda call=call: module._deployment_entity_exists(call)
        place("_deployment_entity_exists: %s of a missing resource" % operation, entity, False)
    place(
        "endpoint_in_service_or_not of a missing endpoint", lambda: session.endpoint_in_service_or_not("absent"), False
    )
    look = live_log(module)
    place("_live_logging_deploy_done: an endpoint that does not exist yet", lambda: look("absent"), None)
    live = lambda: module._has_permission_for_live_logging(boto3.Session(), "absent")
    place("_has_permission_for_live_logging: a group that does not exist yet", live, True)
    failed = lambda: session.wait_for_endpoint("broken", poll=POLL_SECONDS)
    place("wait_for_endpoint of an endpoint that fails", failed, "UnexpectedStatusException")
    place(
        "Session.default_bucket without a bucket: 404, Not Found",
        lambda: session.default_bucket()[:10],
        "sagemaker-",
    )
    place("Session.default_bucket with a bucket, by its owner's account", lambda: bucket_again(session), True)
    place("Session.default_bucket of another account: 403, Forbidden", lambda: other_owner(session), "ClientError")

    def downloaded():
        with tempfile.TemporaryDirectory() as target:
            folder_of(BUCKET, "branches/deep", target, session)
            with open(target + "/object") as file:
                return file.read()

    place("download_folder: HeadObject of a folder", downloaded, "here")


def bucket_again(session):
    name = session.default_bucket()
    session._create_s3_bucket_if_it_does_not_exist(name, session.boto_region_name)
    return s3.head_bucket(Bucket=name)["ResponseMetadata"]["HTTPStatusCode"] == 200


def other_owner(session):
    """Checks that the SDK raises the error of another account's bucket, and no other error."""
    resource = boto3.resource("s3")
    session.expected_bucket_owner_id_bucket_check(session.default_bucket(), resource, "999999999999")
    return "it is let in"


def asynchronous(response_class, predictor):
    waiting = lambda: response_class(predictor, "s3://%s/none" % BUCKET, "s3://%s/nor-this" % BUCKET).get_result()
    place("AsyncInferenceResponse: neither response nor failure yet", waiting, "ObjectNotExistedError")
    waiting = lambda: response_class(predictor, "s3://%s/none" % BUCKET, None).get_result()
    place("AsyncInferenceResponse: no response yet", waiting, "ObjectNotExistedError")
    failed = lambda: response_class(predictor, "s3://%s/none" % BUCKET, "s3://%s/branches/deep/object" % BUCKET)
    place("AsyncInferenceResponse: a failure", lambda: failed().get_result(), "AsyncInferenceModelError")
    nowhere = lambda: response_class(predictor, "s3://%s-absent/none" % BUCKET, None).get_result()
    place("AsyncInferenceResponse: a missing bucket", nowhere, "UnexpectedClientError")


def v2():
    import sagemaker as sdk
    import sagemaker.session as module
    from sagemaker.async_inference import AsyncInferenceResponse
    from sagemaker.predictor import Predictor
    from sagemaker.predictor_async import AsyncPredictor
    from sagemaker.transformer import Transformer
    from sagemaker.utils import download_folder

    prepare()
    session = sdk.Session()
    common(module, session, download_folder)
    gone = lambda: session._inference_component_deletion_done(sagemaker, "absent")
    place("_inference_component_deletion_done of a missing component", gone, True)
    place("stop_transform_job of a missing job", lambda: session.stop_transform_job("absent"), None)
    image = lambda: Transformer("absent", 1, "ml.m5.large", sagemaker_session=session)._retrieve_image_uri()
    place("Transformer of a missing model", image, "ValueError")
    told = []
    words = ([], 1, logs, "/aws/sagemaker/TransformJobs", "absent", {}, False, told.append)
    place("_flush_log_streams: no group yet", lambda: module._flush_log_streams(*words), None)
    asynchronous(AsyncInferenceResponse, AsyncPredictor(Predictor("absent", session)))
    role = lambda: session.get_caller_identity_arn().split(":")[-1]
    place("get_caller_identity_arn: GetRole of the caller's role", role, ROLE.split(":")[-1])
    sagemaker.delete_endpoint(EndpointName="broken")


def v3():
    import sagemaker.core.helper.session_helper as module
    from sagemaker.core.common_utils import _create_resource, download_folder
    from sagemaker.core.resources import Endpoint, InferenceComponent, Model
    from sagemaker.serve import ModelBuilder
    from sagemaker.serve.deployment_progress import _live_logging_deploy_done_with_progress

    prepare()
    session = module.Session()
    module._create_resource = _create_resource
    common(module, session, download_folder)
    builder = ModelBuilder(s3_model_data_url="s3://%s/branches/model.tar.gz" % BUCKET, image_uri=IMAGE, role_arn=ROLE)
    builder.sagemaker_session = session
    place(
        "ModelBuilder._does_endpoint_exist of a missing endpoint", lambda: builder._does_endpoint_exist("absent"), False
    )
    place("ModelBuilder._does_ic_exist of a missing component", lambda: builder._does_ic_exist("absent"), False)
    paginator = logs.get_paginator("filter_log_events")
    look = lambda: _live_logging_deploy_done_with_progress(sagemaker, "absent", paginator, {}, POLL_SECONDS, None)
    place("_live_logging_deploy_done_with_progress of a missing endpoint", look, None)
    broken = Endpoint.get(endpoint_name="broken")
    place(
        "Endpoint.wait_for_status of a failed endpoint",
        lambda: broken.wait_for_status("InService", poll=1),
        "FailedStatusError",
    )
    broken.delete()
    place("Endpoint.wait_for_delete until it is not found", lambda: broken.wait_for_delete(poll=1), None)
    for kind, name in (
        (Endpoint, "endpoint_name"),
        (Model, "model_name"),
        (InferenceComponent, "inference_component_name"),
    ):
        place("%s.get of a missing resource" % kind.__name__, lambda: kind.get(**{name: "absent"}), "ClientError")


# A missing resource for each operation that a waiter may call.
NOTHING = {
    "DescribeEndpoint": ABSENT,
    "DescribeTransformJob": {"TransformJobName": "absent"},
    "HeadBucket": {"Bucket": "branches-absent"},
    "HeadObject": {"Bucket": BUCKET, "Key": "absent"},
    "GetRole": {"RoleName": "absent"},
    "GetPolicy": {"PolicyArn": "arn:aws:iam::000000000000:policy/absent"},
}


def waiters():
    """Checks that missing resources get the errors that waiters match."""
    from botocore import xform_name

    s3.create_bucket(Bucket=BUCKET)
    for service in ("sagemaker", "s3", "iam"):
        client = boto3.client(service)
        config = client._get_waiter_config()["waiters"]
        for name, waiter in sorted(config.items()):
            codes = {each["expected"] for each in waiter["acceptors"] if each["matcher"] == "error"}
            statuses = {each["expected"] for each in waiter["acceptors"] if each["matcher"] == "status"}
            if waiter["operation"] not in NOTHING or not (codes or statuses - {200}):
                continue
            try:
                getattr(client, xform_name(waiter["operation"]))(**NOTHING[waiter["operation"]])
                found = (200, "no error")
            except ClientError as error:
                found = (error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"])
            proven(
                "%s.%s" % (service, name),
                found[1] in codes or found[0] in statuses - {200},
                "%s of %s" % (found, codes or statuses),
            )


logging.disable(logging.ERROR)
{"v2": v2, "v3": v3, "waiters": waiters}[sys.argv[1]]()
finish()
