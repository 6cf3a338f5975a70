"""Deploys framework containers in script mode with the sagemaker SDK v2.

python script_containers.py sklearn|pytorch|xgboost|many DIRECTORY
"""

import json
import os
import sys

import boto3
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sagemaker"))
import sagemaker as sdk
from botocore.exceptions import ClientError
from sagemaker.deserializers import CSVDeserializer, JSONDeserializer
from sagemaker.multidatamodel import MultiDataModel
from sagemaker.predictor import Predictor
from sagemaker.pytorch import PyTorchModel
from sagemaker.serializers import CSVSerializer, JSONSerializer, NumpySerializer
from sagemaker.sklearn import SKLearnModel
from sagemaker.xgboost import XGBoostModel
from statements import POLL_SECONDS, ROLE, eventually, finish, proven, refused, runtime, s3, sagemaker

PHASE, DIRECTORY = sys.argv[1:]
session = sdk.Session()
bucket = session.default_bucket()
logs = boto3.client("logs")

SKLEARN_SCRIPT = """
import os
import joblib
import scaling

def model_fn(model_dir):
    return joblib.load(os.path.join(model_dir, "model.joblib"))

def predict_fn(data, model):
    if data.shape[1] == 1:
        raise ValueError("one column is not enough")
    return scaling.scaled(model.predict(data))
"""
SCALING = "def scaled(values):\n    return values * 2\n"
PYTORCH_SCRIPT = """
import os
import torch

class Net(torch.nn.Linear):
    pass

def model_fn(model_dir, context):
    assert context.system_properties["model_dir"] == model_dir
    net = Net(3, 1)
    net.load_state_dict(torch.load(os.path.join(model_dir, "weights.pt"), weights_only=True))
    return net

def output_fn(prediction, accept, context):
    context.set_response_status(code=201)
    return prediction.numpy().tolist(), "application/x-own"
"""

XGBOOST_SCRIPT = """
import os
import xgboost

def model_fn(model_dir):
    return xgboost.Booster(model_file=os.path.join(model_dir, "xgboost-model"))
"""


def upload(name):
    s3.upload_file(os.path.join(DIRECTORY, name), bucket, "models/" + name)
    return "s3://%s/models/%s" % (bucket, name)


def source(files):
    directory = os.path.join(DIRECTORY, "source-" + PHASE)
    os.makedirs(directory, exist_ok=True)
    for name, text in files.items():
        with open(os.path.join(directory, name), "w") as file:
            file.write(text)
    return directory


def deployed(model, name):
    predictor = model.deploy(initial_instance_count=1, instance_type="ml.m5.large", endpoint_name=name, wait=False)
    session.wait_for_endpoint(name, poll=POLL_SECONDS)
    return predictor


def removed(predictor):
    predictor.delete_model()
    predictor.delete_endpoint()


def sklearn():
    model = SKLearnModel(
        model_data=upload("sklearn-1.tar.gz"),
        role=ROLE,
        entry_point="serving.py",
        source_dir=source({"serving.py": SKLEARN_SCRIPT, "scaling.py": SCALING}),
        framework_version="1.2-1",
        sagemaker_session=session,
    )
    predictor = deployed(model, "scripts-sklearn")
    found = predictor.predict(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]))
    proven("SKLearnModel deploys and predicts", np.allclose(found, [2.0, 10.0]), found)
    predictor.serializer, predictor.deserializer = CSVSerializer(), CSVDeserializer()
    found = predictor.predict("1,0,0\n0,1,1")
    proven("a CSV request gets a CSV response", [float(row[0]) for row in found] == [2.0, 10.0], found)
    predictor.serializer, predictor.deserializer = JSONSerializer(), JSONDeserializer()
    found = predictor.predict([[1, 0, 0]])
    proven("a JSON request gets a JSON response", np.allclose(found, [2.0]), found)

    def ask(body, content_type="application/json"):
        return runtime.invoke_endpoint(EndpointName="scripts-sklearn", ContentType=content_type, Body=body)

    answer = refused(
        "an exception of the script is a ModelError with its traceback",
        "ModelError",
        "one column",
        lambda: ask(b"[[1],[2]]"),
    )
    said = answer.get("OriginalMessage", "")
    proven(
        "an exception of the script has the toolkit's status 500",
        answer.get("OriginalStatusCode") == 500,
        answer.get("OriginalStatusCode"),
    )
    proven(
        "the body of an exception begins with its message", said.startswith("one column is not enough\nTraceback"), said
    )
    proven("the traceback has no frames of Galatea", "serving.py" in said and "galatea_worker" not in said, said)
    refused(
        "an unknown content type is a ModelError",
        "ModelError",
        "Content type x/y is not supported",
        lambda: ask(b"1", "x/y"),
    )
    group = {"logGroupName": "/aws/sagemaker/Endpoints/scripts-sklearn", "filterPattern": '"ValueError: one column"'}
    # The response and the log lines arrive independently.
    events = eventually(lambda: logs.filter_log_events(**group)["events"])
    proven(
        "the traceback is in the log",
        [event["message"] for event in events] == ["ValueError: one column is not enough"],
    )
    removed(predictor)
    uri = sdk.image_uris.retrieve("kmeans", "us-east-1")
    refused(
        "an unknown image is rejected with the list of supported ones",
        "ValidationException",
        "cannot be run here.*sagemaker-scikit-learn.*pytorch-inference",
        lambda: sagemaker.create_model(ModelName="none", ExecutionRoleArn=ROLE, PrimaryContainer={"Image": uri}),
    )


def pytorch():
    model = PyTorchModel(
        model_data=upload("pytorch-weights.tar.gz"),
        role=ROLE,
        entry_point="net.py",
        source_dir=source({"net.py": PYTORCH_SCRIPT}),
        framework_version="2.6",
        py_version="py312",
        sagemaker_session=session,
        env={"SAGEMAKER_MODEL_SERVER_WORKERS": "1"},
    )
    predictor = deployed(model, "scripts-pytorch")
    rows = NumpySerializer().serialize(np.ones((2, 3), np.float32))
    answer = runtime.invoke_endpoint(EndpointName="scripts-pytorch", ContentType="application/x-npy", Body=rows)
    body = json.loads(answer["Body"].read())
    proven("PyTorchModel deploys and predicts", body == [[6.5], [6.5]], body)
    proven(
        "the response has the script's content type",
        answer["ContentType"] == "application/x-own",
        answer["ContentType"],
    )
    removed(predictor)
    scripted = PyTorchModel(
        model_data=upload("pytorch.tar.gz"),
        role=ROLE,
        entry_point="empty.py",
        source_dir=source({"empty.py": "", "net.py": ""}),
        framework_version="2.6",
        py_version="py312",
        sagemaker_session=session,
        env={"SAGEMAKER_MODEL_SERVER_WORKERS": "1"},
    )
    predictor = deployed(scripted, "scripts-torchscript")
    found = predictor.predict(np.ones((1, 3), np.float32))
    proven("a script without functions serves TorchScript by the container's defaults", np.allclose(found, 6.5), found)
    removed(predictor)


def xgboost():
    def wrapped():
        return XGBoostModel(
            model_data=upload("xgboost-1.tar.gz"),
            role=ROLE,
            entry_point="serving.py",
            source_dir=source({"serving.py": XGBOOST_SCRIPT}),
            framework_version="3.0-5",
            sagemaker_session=session,
        )

    rows, expected = np.array([[0.0, 5.0], [3.0, 8.0]]), [["1.0"], ["2.0"]]
    lines = "\n".join(" ".join("%d:%r" % (at, float(cell)) for at, cell in enumerate(row)) for row in rows)
    predictor = deployed(wrapped(), "scripts-xgboost")
    found = predictor.predict(lines)
    proven("XGBoostModel deploys, and a libsvm request gets a CSV response", found == expected, found)
    predictor.serializer, predictor.deserializer = CSVSerializer(), JSONDeserializer()
    found = predictor.predict(rows)
    proven("a CSV request gets a JSON response", found == [1.0, 2.0], found)
    refused(
        "an unsupported content type is a ModelError with the container's text",
        "ModelError",
        "Content type image/png is not supported by this framework",
        lambda: runtime.invoke_endpoint(EndpointName="scripts-xgboost", ContentType="image/png", Body=b"x"),
    )
    removed(predictor)
    prefix = "s3://%s/many-xgboost/" % bucket
    model = MultiDataModel(
        name="scripts-many-xgboost", model_data_prefix=prefix, model=wrapped(), sagemaker_session=session
    )
    predictor = deployed(model, "scripts-many-xgboost")
    for scale in (1, 10):
        local = os.path.join(DIRECTORY, "xgboost-%d.tar.gz" % scale)
        model.add_model(model_data_source=local, model_data_path="%d.tar.gz" % scale)
        found = predictor.predict(lines, target_model="%d.tar.gz" % scale)
        proven(
            "model %d of a multi-model endpoint predicts" % scale,
            found == [["%.1f" % scale], ["%.1f" % (2 * scale)]],
            found,
        )
    removed(predictor)


def many():
    wrapped = SKLearnModel(
        model_data=upload("sklearn-1.tar.gz"),
        role=ROLE,
        entry_point="inference.py",
        source_dir=source({"inference.py": SKLEARN_SCRIPT, "scaling.py": SCALING}),
        framework_version="1.2-1",
        sagemaker_session=session,
    )
    model = MultiDataModel(
        name="scripts-many",
        model_data_prefix="s3://%s/many/" % bucket,
        model=wrapped,
        sagemaker_session=session,
    )
    predictor = deployed(model, "scripts-many")
    for scale in (1, 10):
        local = os.path.join(DIRECTORY, "sklearn-%d.tar.gz" % scale)
        model.add_model(model_data_source=local, model_data_path="%d.tar.gz" % scale)
    proven("MultiDataModel.list_models", sorted(model.list_models()) == ["1.tar.gz", "10.tar.gz"])
    for scale in (1, 10):
        found = predictor.predict(np.array([[1.0, 1.0, 1.0]]), target_model="%d.tar.gz" % scale)
        proven("archive %d predicts with the endpoint's script" % scale, np.allclose(found, 12.0 * scale), found)
    removed(predictor)

    own = MultiDataModel(
        name="scripts-own",
        model_data_prefix="s3://%s/own/" % bucket,
        image_uri=sdk.image_uris.retrieve("sklearn", "us-east-1", version="1.2-1", instance_type="ml.m5.large"),
        role=ROLE,
        predictor_cls=Predictor,
        sagemaker_session=session,
    )
    predictor = deployed(own, "scripts-own")
    local = os.path.join(DIRECTORY, "sklearn-scripted-10.tar.gz")
    own.add_model(model_data_source=local, model_data_path="a/b.tar.gz")
    predictor.serializer, predictor.deserializer = JSONSerializer(), JSONDeserializer()
    found = predictor.predict([[1, 1, 1]], target_model="a/b.tar.gz")
    proven("an archive with its own script predicts", np.allclose(found, [60.0]), found)
    try:
        predictor.predict([[1, 1, 1]], target_model="nothing.tar.gz")
        proven("a missing archive is a ValidationError", False)
    except ClientError as error:
        proven("a missing archive is a ValidationError", error.response["Error"]["Code"] == "ValidationError", error)
    removed(predictor)


{"sklearn": sklearn, "pytorch": pytorch, "xgboost": xgboost, "many": many}[PHASE]()
finish()
