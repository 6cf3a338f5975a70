"""Runs quality, recognition and topic as an inference pipeline of three containers, and as one ensemble in one container, with boto3.

Nothing in this file is specific to Galatea. It needs only boto3, configured for a running platform as README.md describes.

    python read_strips.py REPOSITORY STRIPS.json [--json]

With `--json` all scores are printed, too. Both files are outputs of `train.py write`. The script deletes everything that it has
created except the bucket.
"""

import io
import json
import os
import sys
import tarfile
import time

import boto3

repository, strips_file, *options = sys.argv[1:]
stamp = time.strftime("%Y-%m-%d-%H-%M-%S", time.gmtime())

s3_client = boto3.client("s3")
sm_client = boto3.client("sagemaker")
runtime_sm_client = boto3.client("sagemaker-runtime")
region = boto3.Session().region_name
account = boto3.client("sts").get_caller_identity()["Account"]
role = f"arn:aws:iam::{account}:role/AmazonSageMaker-DefaultRole"
image = f"785573368785.dkr.ecr.{region}.amazonaws.com/sagemaker-tritonserver:23.03-py3"
bucket = f"sagemaker-{region}-{account}"
prefix = f"reading-{stamp}"
try:
    s3_client.create_bucket(Bucket=bucket)
except s3_client.exceptions.BucketAlreadyOwnedByYou:
    pass  # from an earlier run


def container(name, models):
    """Returns a Triton container that serves the first of these models. JSON by tensor names lets containers be chained."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for model in models:
            archive.add(os.path.join(repository, model), arcname=model)
    s3_client.put_object(Bucket=bucket, Key=f"{prefix}/{name}.tar.gz", Body=buffer.getvalue())
    environment = {
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": models[0],
        "SAGEMAKER_TRITON_INFERENCE_TYPE": "generate",
    }
    return {"Image": image, "ModelDataUrl": f"s3://{bucket}/{prefix}/{name}.tar.gz", "Environment": environment}


# 1. The same three models as the containers of a pipeline, and as the steps of an ensemble.
steps = ["quality", "recognition", "topic"]
endpoints = {
    f"pipeline-{stamp}": {"Containers": [container(step, [step]) for step in steps]},
    f"ensemble-{stamp}": {"PrimaryContainer": container("reading", ["reading", *steps])},
}
for name, model in endpoints.items():
    sm_client.create_model(ModelName=name, ExecutionRoleArn=role, **model)
    sm_client.create_endpoint_config(
        EndpointConfigName=name,
        ProductionVariants=[
            {
                "InstanceType": "ml.c5.xlarge",
                "InitialVariantWeight": 1,
                "InitialInstanceCount": 1,
                "ModelName": name,
                "VariantName": "AllTraffic",
            }
        ],
    )
    sm_client.create_endpoint(EndpointName=name, EndpointConfigName=name)
for name in endpoints:
    sm_client.get_waiter("endpoint_in_service").wait(EndpointName=name)

# 2. Invoke both with every strip.
with open(strips_file) as file:
    strips = json.load(file)


def ask(endpoint, strip):
    response = runtime_sm_client.invoke_endpoint(
        EndpointName=endpoint, ContentType="application/json", Body=json.dumps({"PIXELS": strip})
    )
    answer = json.loads(response["Body"].read())
    return {"topic": answer["TOPIC"], "scores": answer["SCORES"]}


answers = {name: [ask(name, strip) for strip in strips] for name in endpoints}
by_pipeline, by_ensemble = answers.values()
assert by_pipeline == by_ensemble, "the pipeline and the ensemble answer differently"
for index, answer in enumerate(by_pipeline):
    print(f"strip {index}: {answer['topic']} {max(answer['scores']):.3f}")
if "--json" in options:
    print(f"answers: {json.dumps(by_pipeline)}")

# 3. Clean up.
for name in endpoints:
    sm_client.delete_model(ModelName=name)
    sm_client.delete_endpoint_config(EndpointConfigName=name)
    sm_client.delete_endpoint(EndpointName=name)
    sm_client.get_waiter("endpoint_deleted").wait(EndpointName=name)
for name in [*steps, "reading"]:
    s3_client.delete_object(Bucket=bucket, Key=f"{prefix}/{name}.tar.gz")
print("done")
