"""Containers with SageMaker's inference toolkit and multi-model-server behind endpoints, by boto3: python toolkit_image.py IMAGE."""

import io
import json
import sys
import tarfile
import time

import boto3

image = sys.argv[1]
s3 = boto3.client("s3")
sagemaker = boto3.client("sagemaker")
runtime = boto3.client("sagemaker-runtime")
logs = boto3.client("logs")

script = b"""
import json
import os


def model_fn(model_dir):
    with open(os.path.join(model_dir, "weights.json")) as file:
        return json.load(file)


def input_fn(body, content_type):
    if content_type != "application/json":
        raise ValueError("no rows in " + content_type)
    return json.loads(body)


def predict_fn(rows, model):
    print("predicting %d rows" % len(rows), flush=True)
    return [model["intercept"] + sum(w * x for w, x in zip(model["weights"], row)) for row in rows]


def output_fn(scores, accept):
    return json.dumps(scores), accept
"""


def upload(key, intercept):
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as archive:
        weights = json.dumps({"weights": [2, 0.5], "intercept": intercept}).encode()
        for name, content in (("weights.json", weights), ("code/inference.py", script)):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    s3.put_object(Bucket="toolkit", Key=key, Body=body.getvalue())


def deploy(name, **container):
    role = "arn:aws:iam::000000000000:role/toolkit"
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=role, PrimaryContainer={"Image": image, **container})
    variant = {"VariantName": "all", "ModelName": name, "InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=name)


def delete(name):
    sagemaker.delete_endpoint(EndpointName=name)
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=name)


def invoke(name, content_type="application/json", **more):
    body = json.dumps([[1, 2], [3, 4]])
    reply = runtime.invoke_endpoint(EndpointName=name, ContentType=content_type, Body=body, **more)
    return reply["ContentType"], json.loads(reply["Body"].read())


def print_refusal(call):
    try:
        call()
    except runtime.exceptions.ModelError as error:
        print(
            "model error",
            error.response["OriginalStatusCode"],
            "no rows in text/csv" in error.response["OriginalMessage"],
        )
    except runtime.exceptions.ClientError as error:
        print(error.response["Error"]["Code"])


def wait_for_log(name, text):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        events = logs.filter_log_events(logGroupName=f"/aws/sagemaker/Endpoints/{name}")["events"]
        if any(text in event["message"] for event in events):
            print("logged")
            break
        time.sleep(0.2)


s3.create_bucket(Bucket="toolkit")
upload("model.tar.gz", 1)
deploy("toolkit-one", ModelDataUrl="s3://toolkit/model.tar.gz")
print("one", *invoke("toolkit-one", Accept="application/json"))
print_refusal(lambda: invoke("toolkit-one", "text/csv"))
wait_for_log("toolkit-one", "predicting 2 rows")
delete("toolkit-one")

for name, intercept in (("a", 10), ("b", 20)):
    upload(f"many/{name}.tar.gz", intercept)
deploy("toolkit-many", ModelDataUrl="s3://toolkit/many/", Mode="MultiModel")
for name in ("a", "b", "a"):
    print("many", name, *invoke("toolkit-many", TargetModel=f"{name}.tar.gz"))
print_refusal(lambda: invoke("toolkit-many", "text/csv", TargetModel="a.tar.gz"))
print_refusal(lambda: invoke("toolkit-many", TargetModel="absent.tar.gz"))
upload("many/a.tar.gz", 30)
deadline = time.monotonic() + 120
while time.monotonic() < deadline and invoke("toolkit-many", TargetModel="a.tar.gz")[1] != [33.0, 38.0]:
    time.sleep(0.2)
print("replaced", *invoke("toolkit-many", TargetModel="a.tar.gz"))
delete("toolkit-many")
