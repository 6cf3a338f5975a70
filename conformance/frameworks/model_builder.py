"""Deploys with the sagemaker SDK v3's ModelBuilder and an inference_spec, for PyTorch and scikit-learn. The SDK generates the script.

python model_builder.py pytorch|scikit-learn
"""

import io
import json
import os
import sys
import tempfile

os.environ.setdefault("SAGEMAKER_CORE_ADMIN_CONFIG_OVERRIDE", os.devnull)
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "sagemaker"))

import numpy as np
from sagemaker.core import image_uris
from sagemaker.serve import ModelBuilder
from sagemaker.serve.builder.schema_builder import SchemaBuilder
from sagemaker.serve.marshalling.custom_payload_translator import CustomPayloadTranslator
from sagemaker.serve.spec.inference_spec import InferenceSpec
from sagemaker.serve.utils.types import ModelServer
from statements import ROLE, answers, finish

IMAGES = {
    "pytorch": {"framework": "pytorch", "version": "2.5", "py_version": "py311", "image_scope": "inference"},
    "scikit-learn": {"framework": "sklearn", "version": "1.2-1", "py_version": "py3"},
}
FACTOR = "factor.txt"


class Scaled(InferenceSpec):
    """Multiplies by the number in a file that `prepare` has put into the archive."""

    def prepare(self, model_dir):
        with open(os.path.join(model_dir, FACTOR), "w") as file:
            file.write("3")

    def load(self, model_dir):
        with open(os.path.join(model_dir, FACTOR)) as file:
            return float(file.read())

    def invoke(self, input_object, model):
        return np.asarray(input_object) * model


class Processed(Scaled):
    def preprocess(self, input_data):
        return input_data["rows"]

    def postprocess(self, predictions):
        return {"scaled": predictions}


class Comma(CustomPayloadTranslator):
    def __init__(self):
        super().__init__("text/comma", "text/comma")

    def serialize_payload_to_bytes(self, payload):
        return ",".join("%g" % each for each in payload).encode()

    def deserialize_payload_from_stream(self, stream):
        return [float(each) for each in stream.read().decode().split(",")]


def deployed(name, kind, spec, schema):
    image = image_uris.retrieve(region="us-east-1", instance_type="ml.m5.large", **IMAGES[kind])
    made = ModelBuilder(
        inference_spec=spec,
        schema_builder=schema,
        image_uri=image,
        role_arn=ROLE,
        model_server=ModelServer.TORCHSERVE,
        model_path=tempfile.mkdtemp(),
        dependencies={"auto": False},
        instance_type="ml.m5.large",
    )
    made.build(model_name=name)
    # Without `wait`, which polls every 30 s.
    endpoint = made.deploy(endpoint_name=name, initial_instance_count=1, instance_type="ml.m5.large", wait=False)
    endpoint.wait_for_status("InService", poll=1)
    return endpoint


def asked(endpoint, body, content_type):
    return endpoint.invoke(body=body, content_type=content_type, accept=content_type).body.read()


def main(kind):
    numbers, scaled = np.array([1.0, 2.0]), np.array([3.0, 6.0])
    arrays = SchemaBuilder(numbers, scaled)
    endpoint = deployed("builder-arrays-" + kind, kind, Scaled(), arrays)
    body = arrays.input_serializer.serialize(numbers)
    found = lambda: np.load(io.BytesIO(asked(endpoint, body, "application/x-npy"))).tolist()
    answers("an inference_spec predicts with arrays and a file that prepare wrote", found, [3.0, 6.0])
    endpoint.delete()

    endpoint = deployed("builder-json-" + kind, kind, Processed(), SchemaBuilder({"rows": [1.0]}, {"scaled": [3.0]}))
    found = lambda: json.loads(asked(endpoint, b'{"rows": [[1, 2], [3, 4]]}', "application/json"))
    answers("preprocess and postprocess convert JSON", found, {"scaled": [[3.0, 6.0], [9.0, 12.0]]})
    endpoint.delete()

    custom = SchemaBuilder([1.0], [3.0], input_translator=Comma(), output_translator=Comma())
    endpoint = deployed("builder-custom-" + kind, kind, Scaled(), custom)
    answers("a CustomPayloadTranslator", lambda: asked(endpoint, b"1,2.5", "text/comma"), b"3,7.5")
    endpoint.delete()
    finish()


main(sys.argv[1])
