"""Tests a container image of the user behind an endpoint with boto3: python own_image.py IMAGE. All other settings
come from the environment of `galatea env`.
"""

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

body = io.BytesIO()
with tarfile.open(fileobj=body, mode="w:gz") as archive:
    weights = json.dumps({"weights": [2, 0.5], "intercept": 1}).encode()
    entry = tarfile.TarInfo("weights.json")
    entry.size = len(weights)
    archive.addfile(entry, io.BytesIO(weights))
s3.create_bucket(Bucket="own-image")
s3.put_object(Bucket="own-image", Key="model.tar.gz", Body=body.getvalue())

container = {"Image": image, "ModelDataUrl": "s3://own-image/model.tar.gz"}
sagemaker.create_model(
    ModelName="own-image", ExecutionRoleArn="arn:aws:iam::000000000000:role/own", PrimaryContainer=container
)
variant = {"VariantName": "all", "ModelName": "own-image", "InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
sagemaker.create_endpoint_config(EndpointConfigName="own-image", ProductionVariants=[variant])
sagemaker.create_endpoint(EndpointName="own-image", EndpointConfigName="own-image")
sagemaker.get_waiter("endpoint_in_service").wait(EndpointName="own-image")

reply = runtime.invoke_endpoint(EndpointName="own-image", ContentType="text/csv", Body="1,2\n3,4\n")
print("scores", reply["Body"].read().decode().split(), reply["ContentType"])
try:
    runtime.invoke_endpoint(EndpointName="own-image", ContentType="image/png", Body=b"")
except runtime.exceptions.ModelError as error:
    print("refused", error.response["OriginalStatusCode"], error.response["OriginalMessage"].strip())

deadline = time.monotonic() + 120
while time.monotonic() < deadline:
    events = logs.filter_log_events(logGroupName="/aws/sagemaker/Endpoints/own-image")["events"]
    if any(event["message"] == "predicting 2 rows" for event in events):
        print("logged")
        break
    time.sleep(0.2)

sagemaker.delete_endpoint(EndpointName="own-image")
sagemaker.get_waiter("endpoint_deleted").wait(EndpointName="own-image")
