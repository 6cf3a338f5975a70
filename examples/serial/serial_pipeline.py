"""Chains scikit-learn, linear learner and XGBoost with the sagemaker SDK v2: an endpoint, a batch transform, and a multi-model linear learner.

Nothing in this file is specific to Galatea. It needs sagemaker<3, configured for a running platform as README.md describes.

    python serial_pipeline.py DIRECTORY    the output of train.py
"""

import io
import json
import pathlib
import sys
import tarfile
import time

import sagemaker as sdk
from linear_learner import linear_files
from sagemaker import image_uris
from sagemaker.model import Model
from sagemaker.multidatamodel import MultiDataModel
from sagemaker.pipeline import PipelineModel
from sagemaker.sklearn import SKLearnModel

DIRECTORY = pathlib.Path(sys.argv[1])
FACTS = json.loads((DIRECTORY / "serial.json").read_text())
STAMP = time.strftime("%Y-%m-%d-%H-%M-%S", time.gmtime())
PREFIX = "serial-" + STAMP
session = sdk.Session()
bucket = session.default_bucket()
account = session.boto_session.client("sts").get_caller_identity()["Account"]
role = "arn:aws:iam::%s:role/AmazonSageMaker-DefaultRole" % account
s3 = session.boto_session.client("s3")
sagemaker = session.boto_session.client("sagemaker")
runtime = session.boto_session.client("sagemaker-runtime")
SCRIPT = """
import os
import joblib

def model_fn(model_dir):
    return joblib.load(os.path.join(model_dir, "model.joblib"))

def predict_fn(data, model):
    return model.transform(data)
"""
# Containers exchange CSV: a client's Accept applies to the last one.
CSV = {"SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT": "text/csv"}


def put(key, files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    s3.put_object(Bucket=bucket, Key=key, Body=buffer.getvalue())
    return "s3://%s/%s" % (bucket, key)


def scaler():
    script = DIRECTORY / "serving.py"
    script.write_text(SCRIPT)
    return SKLearnModel(
        model_data=put(PREFIX + "/scaler.tar.gz", {"model.joblib": (DIRECTORY / "model.joblib").read_bytes()}),
        role=role,
        entry_point=str(script),
        framework_version="1.2-1",
        env=CSV,
        sagemaker_session=session,
    )


def built_in(name, version=None, **model):
    image = image_uris.retrieve(name, session.boto_region_name, version=version)
    return Model(image_uri=image, role=role, sagemaker_session=session, **model)


def deployed(name, models):
    pipeline = PipelineModel(models=models, role=role, name=name, sagemaker_session=session)
    pipeline.deploy(initial_instance_count=1, instance_type="ml.c4.xlarge", endpoint_name=name, wait=False)
    session.wait_for_endpoint(name, poll=1)
    return pipeline


def ask(endpoint, rows, **more):
    body = text_of(rows)
    reply = runtime.invoke_endpoint(EndpointName=endpoint, ContentType="text/csv", Accept="text/csv", Body=body, **more)
    return [float(line) for line in reply["Body"].read().split()]


def text_of(rows):
    return "\n".join(",".join(map(repr, row)) for row in rows) + "\n"


def near(found, expected, tolerance):
    return len(found) == len(expected) and all(abs(a - b) <= tolerance for a, b in zip(found, expected))


# 1. The chain of three models, invoked with all rows at once and one by one.
three, targeted = "three-" + STAMP, "targeted-" + STAMP
linear = linear_files(FACTS["weights"], FACTS["bias"])
trees = put(PREFIX + "/trees.tar.gz", {"xgboost-model": (DIRECTORY / "xgboost-model.json").read_bytes()})
pipeline = deployed(
    three,
    [
        scaler(),
        built_in("linear-learner", model_data=put(PREFIX + "/linear.tar.gz", linear), env=CSV),
        built_in("xgboost", "1.7-1", model_data=trees),
    ],
)
found = ask(three, FACTS["rows"])
print("pipeline of three models: %s" % found)
assert near(found, FACTS["probabilities"], 1e-5)
assert near([ask(three, [row])[0] for row in FACTS["rows"]], FACTS["probabilities"], 1e-5)

# 2. A batch transform of a file of rows.
s3.put_object(Bucket=bucket, Key=PREFIX + "/in/rows.csv", Body=text_of(FACTS["rows"]))
transformer = pipeline.transformer(
    instance_count=1,
    instance_type="ml.m5.xlarge",
    strategy="MultiRecord",
    assemble_with="Line",
    accept="text/csv",
    output_path="s3://%s/%s/out" % (bucket, PREFIX),
)
rows = "s3://%s/%s/in/rows.csv" % (bucket, PREFIX)
transformer.transform(rows, content_type="text/csv", split_type="Line", job_name="rows-" + STAMP, wait=False)
waiter = sagemaker.get_waiter("transform_job_completed_or_stopped")
waiter.wait(TransformJobName="rows-" + STAMP, WaiterConfig={"Delay": 1, "MaxAttempts": 120})
written = s3.get_object(Bucket=bucket, Key=PREFIX + "/out/rows.csv.out")["Body"].read()
found = [float(line) for line in written.split()]
print("batch transform: %s" % found)
assert near(found, FACTS["probabilities"], 1e-5)

# 3. A pipeline whose second container has several models. TargetModel of the request selects one.
put(PREFIX + "/many/today.tar.gz", linear)
put(PREFIX + "/many/reversed.tar.gz", linear_files([-weight for weight in FACTS["weights"]], -FACTS["bias"]))
many = MultiDataModel(
    name="many-" + STAMP,
    model_data_prefix="s3://%s/%s/many/" % (bucket, PREFIX),
    model=built_in("linear-learner"),
    sagemaker_session=session,
)
deployed(targeted, [scaler(), many])
for name, sign in (("today", 1), ("reversed", -1)):
    found = ask(targeted, FACTS["rows"], TargetModel=name + ".tar.gz")
    print("targeted, %s: %s" % (name, found))
    assert near(found, [sign * score for score in FACTS["scores"][: len(FACTS["rows"])]], 1e-3)

# 4. Clean up.
for name in (three, targeted):
    description = sagemaker.describe_endpoint(EndpointName=name)
    sagemaker.delete_endpoint(EndpointName=name)
    sagemaker.delete_endpoint_config(EndpointConfigName=description["EndpointConfigName"])
    sagemaker.delete_model(ModelName=name)
for listed in s3.list_objects_v2(Bucket=bucket, Prefix=PREFIX + "/").get("Contents", []):
    s3.delete_object(Bucket=bucket, Key=listed["Key"])
print("done")
