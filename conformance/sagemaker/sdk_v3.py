"""Tests the sagemaker SDK v3: its resources (sagemaker-core) and its ModelBuilder (sagemaker-serve).

Settings come from the environment that `galatea env --proxy` prints. Each check prints a line; the exit code is 1 if one fails.
"""

import io
import json
import os

os.environ.setdefault("SAGEMAKER_CORE_ADMIN_CONFIG_OVERRIDE", os.devnull)

from archives import archive, doubling
from sagemaker.core.resources import Endpoint, EndpointConfig, Model
from sagemaker.core.shapes import ContainerDefinition, ProductionVariant
from sagemaker.serve import ModelBuilder
from statements import BUCKET, IMAGE, ROLE, answers, finish, proven, s3

REQUEST = json.dumps({"inputs": [{"name": "X", "shape": [2], "datatype": "FP32", "data": [1.0, 2.5]}]})
DATA = "s3://%s/v3/model.tar.gz" % BUCKET


def doubled(endpoint):
    reply = endpoint.invoke(body=REQUEST, content_type="application/json", accept="application/json")
    return json.loads(reply.body.read())["outputs"][0]["data"]


def resources():
    name = "v3-resources"
    model = Model.create(
        model_name=name,
        execution_role_arn=ROLE,
        primary_container=ContainerDefinition(image=IMAGE, model_data_url=DATA),
    )
    variant = ProductionVariant(
        variant_name="AllTraffic", model_name=name, initial_instance_count=1, instance_type="ml.g4dn.xlarge"
    )
    config = EndpointConfig.create(endpoint_config_name=name, production_variants=[variant])
    endpoint = Endpoint.create(endpoint_name=name, endpoint_config_name=name)
    endpoint.wait_for_status("InService", poll=1)
    proven(
        "Endpoint.create and wait_for_status return", endpoint.endpoint_status == "InService", endpoint.endpoint_status
    )
    answers("Endpoint.invoke", lambda: doubled(endpoint), [2.0, 5.0])
    found = [each.endpoint_name for each in Endpoint.get_all(name_contains="v3-")]
    proven("Endpoint.get_all", found == [name], found)
    models = lambda: [each.model_name for each in Model.get_all() if each.model_name == name]
    answers("Model.get_all", models, [name])
    endpoint.delete()
    endpoint.wait_for_delete(poll=1)
    config.delete()
    model.delete()
    answers("Model.get_all lists no deleted model", models, [])


def builder():
    made = ModelBuilder(s3_model_data_url=DATA, image_uri=IMAGE, role_arn=ROLE)
    made.build(model_name="v3-builder")
    # Without `wait`, which polls every 30 s.
    endpoint = made.deploy(
        endpoint_name="v3-builder", initial_instance_count=1, instance_type="ml.g4dn.xlarge", wait=False
    )
    endpoint.wait_for_status("InService", poll=1)
    answers("ModelBuilder builds and deploys", lambda: doubled(endpoint), [2.0, 5.0])
    endpoint.delete()


s3.create_bucket(Bucket=BUCKET)
s3.upload_fileobj(io.BytesIO(archive(doubling)), BUCKET, "v3/model.tar.gz")
resources()
builder()
finish()
