"""Deploys TensorFlow Serving's container with the sagemaker SDK v2, with archives that tensorflow_serving_models.py wrote.

python tensorflow_containers.py DIRECTORY
"""

import json
import os
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sagemaker"))
import sagemaker as sdk
from sagemaker.deserializers import JSONDeserializer
from sagemaker.multidatamodel import MultiDataModel
from sagemaker.serializers import CSVSerializer, JSONSerializer
from sagemaker.tensorflow import TensorFlowModel, TensorFlowPredictor
from statements import POLL_SECONDS, ROLE, finish, proven, refused, runtime, s3

(DIRECTORY,) = sys.argv[1:]
session = sdk.Session()
bucket = session.default_bucket()

SCRIPT = """
import json
import words

def input_handler(data, context):
    if context.request_content_type != "text/x-words":
        raise ValueError("no " + words.NAME)
    return json.dumps({"instances": [[float(len(one)) for one in data.read().decode("utf-8").split()]]})

def output_handler(response, context):
    return json.dumps({"lengths": response.json()["predictions"]}), context.accept_header
"""


def packed(name):
    path = os.path.join(DIRECTORY, name + ".tar.gz")
    with tarfile.open(path, "w:gz") as tar:
        tar.add(os.path.join(DIRECTORY, name), ".")
    return path


def uploaded(name):
    s3.upload_file(packed(name), bucket, "models/%s.tar.gz" % name)
    return "s3://%s/models/%s.tar.gz" % (bucket, name)


def deployed(model, name):
    predictor = model.deploy(initial_instance_count=1, instance_type="ml.m5.large", endpoint_name=name, wait=False)
    session.wait_for_endpoint(name, poll=POLL_SECONDS)
    return predictor


def removed(predictor):
    predictor.delete_model()
    predictor.delete_endpoint()


def single():
    model = TensorFlowModel(
        model_data=uploaded("lines"),
        role=ROLE,
        framework_version="2.19",
        container_log_level=20,
        sagemaker_session=session,
    )
    predictor = deployed(model, "tensorflow-lines")
    found = predictor.predict({"instances": [1.0, 2.0]})
    proven("TensorFlowModel deploys and predicts", found == {"predictions": [2.1, 2.2]}, found)
    found = predictor.predict([1.0, 2.0])
    proven("a list of numbers is one row", found == {"predictions": [[2.1, 2.2]]}, found)
    old = TensorFlowPredictor("tensorflow-lines", session, model_name="line", model_version=1)
    found = old.predict({"inputs": [1, 2]})
    proven("a predictor selects a model and a version", found == {"outputs": [2.5, 3.0]}, found)
    none = TensorFlowPredictor("tensorflow-lines", session, model_version=5)
    answer = refused(
        "a missing version is a ModelError",
        "ModelError",
        "Servable not found for request: Specific\\(line, 5\\)",
        lambda: none.predict({"instances": [1]}),
    )
    proven("with TensorFlow Serving's status", answer.get("OriginalStatusCode") == 404, answer)
    removed(predictor)


def examples():
    model = TensorFlowModel(
        model_data=uploaded("examples"), role=ROLE, framework_version="2.19", sagemaker_session=session
    )
    predictor = deployed(model, "tensorflow-examples")
    body = {"examples": [{"x": [0.5, 0.25], "n": 3, "s": "one"}]}
    found = predictor.classify(body)
    proven("TensorFlowPredictor.classify", found == {"results": [[["one", 3.75], ["one!", -3.75]]]}, found)
    found = predictor.regress({"signature_name": "regression", **body})
    proven("TensorFlowPredictor.regress", found == {"results": [3.75]}, found)
    removed(predictor)


def scripted():
    source = os.path.join(DIRECTORY, "source")
    os.makedirs(source)
    for name, text in (("inference.py", SCRIPT), ("words.py", "NAME = 'words'\n")):
        with open(os.path.join(source, name), "w") as file:
            file.write(text)
    model = TensorFlowModel(
        model_data=uploaded("other"),
        role=ROLE,
        entry_point="inference.py",
        source_dir=source,
        framework_version="2.19",
        sagemaker_session=session,
    )
    predictor = deployed(model, "tensorflow-scripted")

    def ask(kind):
        return runtime.invoke_endpoint(
            EndpointName="tensorflow-scripted", ContentType=kind, Accept="application/json", Body=b"a bb ccc"
        )

    answer = ask("text/x-words")
    found = json.loads(answer["Body"].read())
    proven(
        "handlers of an entry point that the SDK packed convert requests and responses",
        found == {"lengths": [[2.1, 2.2, 2.3]]},
        found,
    )
    proven(
        "the response has the handler's content type",
        answer["ContentType"] == "application/json",
        answer["ContentType"],
    )
    refused("an exception of a handler is a ModelError", "ModelError", "no words", lambda: ask("text/plain"))
    removed(predictor)


def many():
    model = MultiDataModel(
        name="tensorflow-many",
        model_data_prefix="s3://%s/tensorflow-many/" % bucket,
        image_uri=sdk.image_uris.retrieve(
            "tensorflow", "us-east-1", version="2.19", instance_type="ml.m5.large", image_scope="inference"
        ),
        role=ROLE,
        predictor_cls=TensorFlowPredictor,
        sagemaker_session=session,
    )
    predictor = deployed(model, "tensorflow-many")
    for name in ("lines", "other", "pair"):
        model.add_model(model_data_source=packed(name), model_data_path=name + ".tar.gz")
    proven("MultiDataModel.list_models", sorted(model.list_models()) == ["lines.tar.gz", "other.tar.gz", "pair.tar.gz"])
    predictor.serializer, predictor.deserializer = JSONSerializer(), JSONDeserializer()

    def ask(name, data, **more):
        args = {"TargetModel": name + ".tar.gz", **more}
        return predictor.predict(data, initial_args=args)

    found = ask("lines", {"instances": [1, 2]})
    proven("the first model of a multi-model endpoint predicts", found == {"predictions": [2.1, 2.2]}, found)
    found = ask("pair", {"inputs": {"a": [[1, 2]], "b": [3], "c": [[True]]}})
    proven("another", found["outputs"]["sum"] == [6.0], found)
    predictor.serializer = CSVSerializer()
    found = ask("other", [[1, 2, 3]], CustomAttributes="tfs-model-version=1")
    proven("a CSV request can select a version", found == {"predictions": [[2.5, 3.0, 3.5]]}, found)
    refused("a missing archive is a ValidationError", "ValidationError", "", lambda: ask("nothing", [[1]]))
    removed(predictor)


def transformed():
    model = TensorFlowModel(
        model_data=uploaded("other"),
        role=ROLE,
        framework_version="2.19",
        sagemaker_session=session,
        env={"SAGEMAKER_TFS_ENABLE_BATCHING": "true"},
    )
    s3.put_object(Bucket=bucket, Key="rows/in.csv", Body=b"1,2,3\n4,5,6\n")
    transformer = model.transformer(
        instance_count=1, instance_type="ml.m5.large", strategy="MultiRecord", output_path="s3://%s/rows-out" % bucket
    )
    transformer.transform("s3://%s/rows/" % bucket, content_type="text/csv", split_type="Line", wait=False)
    session.wait_for_transform_job(transformer.latest_transform_job.name, poll=POLL_SECONDS)
    found = json.loads(s3.get_object(Bucket=bucket, Key="rows-out/in.csv.out")["Body"].read())
    proven("TensorFlowModel.transformer", found == {"predictions": [[2.1, 2.2, 2.3], [2.4, 2.5, 2.6]]}, found)


for phase in (single, examples, scripted, many, transformed):
    phase()
finish()
