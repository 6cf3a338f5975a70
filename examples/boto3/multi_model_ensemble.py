"""Thousands of ensembles behind one endpoint: the workflow as a SageMaker user writes it.

Nothing in this file is specific to Galatea. It needs only the clients, and boto3 configured for a running platform:

    python3 -m venv .venv && .venv/bin/pip install boto3 numpy "tritonclient[http]"
    npx galatea up &
    eval "$(npx galatea env)"
    .venv/bin/python examples/boto3/multi_model_ensemble.py MODEL_REPOSITORY

MODEL_REPOSITORY is a Triton model repository whose ensemble has the input TEXT (BYTES, [1]) and the output EMBEDDING (FP32);
`npm start -- --once` leaves one at .galatea/story/models. The script deletes everything that it has created except the bucket.
"""

import json
import os
import sys
import tarfile
import tempfile
import time

import boto3
import numpy as np
import tritonclient.http as http_client

repository = sys.argv[1]
stamp = time.strftime("%Y-%m-%d-%H-%M-%S", time.gmtime())

s3_client = boto3.client("s3")
sm_client = boto3.client("sagemaker")
runtime_sm_client = boto3.client("sagemaker-runtime")
region = boto3.Session().region_name
account = boto3.client("sts").get_caller_identity()["Account"]
role = f"arn:aws:iam::{account}:role/AmazonSageMaker-DefaultRole"

# 1. Package the ensemble and upload it once for each tenant.
bucket = f"sagemaker-{region}-{account}"
prefix = f"multi-model-ensembles-{stamp}"
try:
    s3_client.create_bucket(Bucket=bucket)
except s3_client.exceptions.BucketAlreadyOwnedByYou:
    pass  # from an earlier run


def package(repository, path):
    with tarfile.open(path, "w:gz", compresslevel=0) as archive:
        archive.add(repository, arcname=".")


with tempfile.TemporaryDirectory() as folder:
    archive = os.path.join(folder, "tenant.tar.gz")
    package(repository, archive)
    for tenant in ("tenant-a.tar.gz", "tenant-b.tar.gz"):
        s3_client.upload_file(archive, bucket, f"{prefix}/{tenant}")

# 2. One model object over the whole prefix, one endpoint configuration, one endpoint.
model_name = f"ensembles-{stamp}"
container = {
    "Image": f"785573368785.dkr.ecr.{region}.amazonaws.com/sagemaker-tritonserver:23.03-py3",
    "ModelDataUrl": f"s3://{bucket}/{prefix}/",
    "Mode": "MultiModel",
}
sm_client.create_model(ModelName=model_name, ExecutionRoleArn=role, PrimaryContainer=container)
sm_client.create_endpoint_config(
    EndpointConfigName=model_name,
    ProductionVariants=[
        {
            "InstanceType": "ml.c5.xlarge",
            "InitialVariantWeight": 1,
            "InitialInstanceCount": 1,
            "ModelName": model_name,
            "VariantName": "AllTraffic",
        }
    ],
)
sm_client.create_endpoint(EndpointName=model_name, EndpointConfigName=model_name)
sm_client.get_waiter("endpoint_in_service").wait(EndpointName=model_name)
print("endpoint", model_name, sm_client.describe_endpoint(EndpointName=model_name)["EndpointStatus"])

# 3. Invoke with JSON: the first call of a tenant loads its ensemble.
sentences = ["The cat sits outside", "A man is playing guitar"]
payload = {
    "inputs": [{"name": "TEXT", "shape": [len(sentences), 1], "datatype": "BYTES", "data": sentences}],
}
response = runtime_sm_client.invoke_endpoint(
    EndpointName=model_name,
    ContentType="application/octet-stream",
    Body=json.dumps(payload),
    TargetModel="tenant-a.tar.gz",
)
output = json.loads(response["Body"].read())["outputs"][0]
by_json = np.array(output["data"], dtype=np.float32).reshape(output["shape"])
print("json  ", by_json.shape, by_json[0, :3])

# 4. Invoke with Triton's binary content type, built and read by the Triton client library.
text = http_client.InferInput("TEXT", [len(sentences), 1], "BYTES")
text.set_data_from_numpy(np.array([[each] for each in sentences], dtype=np.object_), binary_data=True)
wanted = http_client.InferRequestedOutput("EMBEDDING", binary_data=True)
body, header_length = http_client.InferenceServerClient.generate_request_body([text], outputs=[wanted])
content_type = "application/vnd.sagemaker-triton.binary+json;json-header-size="
response = runtime_sm_client.invoke_endpoint(
    EndpointName=model_name,
    ContentType=f"{content_type}{header_length}",
    Body=body,
    TargetModel="tenant-b.tar.gz",
)
result = http_client.InferenceServerClient.parse_response_body(
    response["Body"].read(), header_length=int(response["ContentType"][len(content_type) :])
)
by_binary = result.as_numpy("EMBEDDING")
print("binary", by_binary.shape, by_binary[0, :3])
assert np.allclose(by_json, by_binary, atol=1e-5)

# 5. Add a tenant by uploading one object; the endpoint is not touched.
s3_client.copy_object(
    Bucket=bucket, Key=f"{prefix}/tenant-c.tar.gz", CopySource={"Bucket": bucket, "Key": f"{prefix}/tenant-a.tar.gz"}
)
started = time.perf_counter()
runtime_sm_client.invoke_endpoint(
    EndpointName=model_name, ContentType="application/json", Body=json.dumps(payload), TargetModel="tenant-c.tar.gz"
)
print(f"new tenant responded after {(time.perf_counter() - started) * 1e3:.0f} ms")

# 6. Delete a tenant by deleting its object.
s3_client.delete_object(Bucket=bucket, Key=f"{prefix}/tenant-c.tar.gz")
try:
    runtime_sm_client.invoke_endpoint(
        EndpointName=model_name, ContentType="application/json", Body=json.dumps(payload), TargetModel="tenant-c.tar.gz"
    )
    raise SystemExit("a deleted tenant responded")
except runtime_sm_client.exceptions.ClientError as error:
    print("deleted tenant:", error.response["Error"]["Code"])

# 7. Clean up, in the order of the notebooks.
sm_client.delete_model(ModelName=model_name)
sm_client.delete_endpoint_config(EndpointConfigName=model_name)
sm_client.delete_endpoint(EndpointName=model_name)
sm_client.get_waiter("endpoint_deleted").wait(EndpointName=model_name)
for tenant in ("tenant-a.tar.gz", "tenant-b.tar.gz"):
    s3_client.delete_object(Bucket=bucket, Key=f"{prefix}/{tenant}")
print("done")
