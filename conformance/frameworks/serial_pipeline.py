"""A serial pipeline of scikit-learn, linear learner and XGBoost, and one whose linear learner is one of many, with the sagemaker SDK v2.

python serial_pipeline.py DIRECTORY
"""

import json
import os
import pathlib
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sagemaker"))
import sagemaker as sdk
from archives import archive, linear_files
from sagemaker import image_uris
from sagemaker.model import Model
from sagemaker.multidatamodel import MultiDataModel
from sagemaker.pipeline import PipelineModel
from sagemaker.sklearn import SKLearnModel
from statements import POLL_SECONDS, ROLE, finish, proven, runtime, s3

DIRECTORY = pathlib.Path(sys.argv[1])
FACTS = json.loads((DIRECTORY / "serial.json").read_text())
SCRIPT = """
import os
import joblib

def model_fn(model_dir):
    return joblib.load(os.path.join(model_dir, "model.joblib"))

def predict_fn(data, model):
    return model.transform(data)
"""
# What is between containers is CSV: a client's Accept is for the last of them.
CSV = {"SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT": "text/csv"}
session = sdk.Session()
bucket = session.default_bucket()


def put(key, files):
    s3.put_object(Bucket=bucket, Key=key, Body=archive(files))
    return "s3://%s/%s" % (bucket, key)


def scaler():
    script = DIRECTORY / "serving.py"
    script.write_text(SCRIPT)
    return SKLearnModel(
        model_data=put("serial/scaler.tar.gz", {"model.joblib": (DIRECTORY / "model.joblib").read_bytes()}),
        role=ROLE,
        entry_point=str(script),
        framework_version="1.2-1",
        env=CSV,
        sagemaker_session=session,
    )


def built_in(name, version=None, **model):
    image = image_uris.retrieve(name, session.boto_region_name, version=version)
    return Model(image_uri=image, role=ROLE, sagemaker_session=session, **model)


def deployed(name, models):
    pipeline = PipelineModel(models=models, role=ROLE, name=name, sagemaker_session=session)
    pipeline.deploy(initial_instance_count=1, instance_type="ml.c4.xlarge", endpoint_name=name, wait=False)
    session.wait_for_endpoint(name, poll=POLL_SECONDS)


def ask(endpoint, rows, **more):
    body = "\n".join(",".join(map(repr, row)) for row in rows)
    reply = runtime.invoke_endpoint(EndpointName=endpoint, ContentType="text/csv", Accept="text/csv", Body=body, **more)
    return [float(line) for line in reply["Body"].read().split()]


def near(found, expected, tolerance):
    return len(found) == len(expected) and all(abs(a - b) <= tolerance for a, b in zip(found, expected))


linear = linear_files(FACTS["weights"], FACTS["bias"])
trees = put("serial/trees.tar.gz", {"xgboost-model": (DIRECTORY / "xgboost-model.json").read_bytes()})
deployed(
    "serial-three",
    [
        scaler(),
        built_in("linear-learner", model_data=put("serial/linear.tar.gz", linear), env=CSV),
        built_in("xgboost", "1.7-1", model_data=trees),
    ],
)
found = ask("serial-three", FACTS["rows"])
proven("scikit-learn, linear learner and XGBoost in a row", near(found, FACTS["probabilities"], 1e-5), found)
found = [ask("serial-three", [row])[0] for row in FACTS["rows"]]
proven("row by row", near(found, FACTS["probabilities"], 1e-5), found)

put("serial/many/today.tar.gz", linear)
put("serial/many/reversed.tar.gz", linear_files([-weight for weight in FACTS["weights"]], -FACTS["bias"]))
many = MultiDataModel(
    name="serial-many",
    model_data_prefix="s3://%s/serial/many/" % bucket,
    model=built_in("linear-learner"),
    sagemaker_session=session,
)
deployed("serial-targeted", [scaler(), many])
expected = FACTS["scores"][: len(FACTS["rows"])]
for name, sign in (("today", 1), ("reversed", -1)):
    found = ask("serial-targeted", FACTS["rows"], TargetModel=name + ".tar.gz")
    proven("targeted invocation: " + name, near(found, [sign * score for score in expected], 1e-3), found)
finish()
