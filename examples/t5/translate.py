"""Deploys T5 in Triton's Python backend with its own environment on a multi-model endpoint, as a SageMaker user writes it.

Nothing in this file is specific to Galatea. It needs boto3, numpy and tokenizers, and boto3 configured for a running platform as README.md describes.

    python translate.py MODEL_REPOSITORY [SENTENCE...] [--scale [INVOCATIONS]]

MODEL_REPOSITORY has the model t5 with its packed environment. With `--scale` the endpoint scales under load from one instance to two, for more
than INVOCATIONS per instance and minute, and back to one afterwards, which takes half an hour as on SageMaker.
The script deletes everything that it has created except the bucket.
"""

import argparse
import json
import os
import sys
import tarfile
import tempfile
import time

import boto3
import numpy as np
from tokenizers import Tokenizer

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "boto3"))
from endpoint_scaling import ScaledEndpoint

parser = argparse.ArgumentParser()
parser.add_argument("repository")
parser.add_argument("sentences", nargs="*", default=["translate English to German: The house is wonderful."])
parser.add_argument("--scale", nargs="?", type=float, const=500.0)
options = parser.parse_args()
repository, sentences = options.repository, options.sentences
stamp = time.strftime("%Y-%m-%d-%H-%M-%S", time.gmtime())

s3_client = boto3.client("s3")
sm_client = boto3.client("sagemaker")
runtime_sm_client = boto3.client("sagemaker-runtime")
region = boto3.Session().region_name
account = boto3.client("sts").get_caller_identity()["Account"]
role = f"arn:aws:iam::{account}:role/AmazonSageMaker-DefaultRole"
mme_triton_image_uri = f"785573368785.dkr.ecr.{region}.amazonaws.com/sagemaker-tritonserver:23.02-py3"

# 1. Package the model with its environment and upload it.
bucket = f"sagemaker-{region}-{account}"
prefix = f"nlp-mme-gpu-{stamp}"
try:
    s3_client.create_bucket(Bucket=bucket)
except s3_client.exceptions.BucketAlreadyOwnedByYou:
    pass  # from an earlier run
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "t5.tar.gz")
    # The content is compressed already, or random numbers.
    with tarfile.open(path, "w:gz", compresslevel=0) as archive:
        archive.add(os.path.join(repository, "t5"), arcname="t5")
    s3_client.upload_file(path, bucket, f"{prefix}/t5.tar.gz")

# 2. A multi-model endpoint with all models under the prefix.
name = f"{prefix}-ep"
container = {"Image": mme_triton_image_uri, "ModelDataUrl": f"s3://{bucket}/{prefix}/", "Mode": "MultiModel"}
sm_client.create_model(ModelName=name, ExecutionRoleArn=role, PrimaryContainer=container)
sm_client.create_endpoint_config(
    EndpointConfigName=name,
    ProductionVariants=[
        {
            "InstanceType": "ml.g5.2xlarge",
            "InitialVariantWeight": 1,
            "InitialInstanceCount": 1,
            "ModelName": name,
            "VariantName": "AllTraffic",
        }
    ],
)
sm_client.create_endpoint(EndpointName=name, EndpointConfigName=name)
sm_client.get_waiter("endpoint_in_service").wait(EndpointName=name)
# The start of the metrics' time range.
scaled = ScaledEndpoint(name)

# 3. Invoke with one sentence, and with all of them as a batch.
tokenizer = Tokenizer.from_file(os.path.join(repository, "t5", "tokenizer.json"))
tokenizer.enable_padding(pad_id=0, pad_token="<pad>", length=32)


def ask(texts):
    encoded = tokenizer.encode_batch(texts)
    tensors = {"input_ids": [each.ids for each in encoded], "attention_mask": [each.attention_mask for each in encoded]}
    payload = {
        "inputs": [
            {"name": key, "shape": np.shape(rows), "datatype": "INT32", "data": rows} for key, rows in tensors.items()
        ]
    }
    response = runtime_sm_client.invoke_endpoint(
        EndpointName=name,
        ContentType="application/octet-stream",
        Body=json.dumps(payload),
        TargetModel="t5.tar.gz",
    )
    output = json.loads(response["Body"].read().decode("utf8"))["outputs"][0]
    return np.array(output["data"]).reshape(output["shape"])


begun = time.monotonic()
first = ask(sentences[:1])
print(f"first response after {time.monotonic() - begun:.1f} s, including the load of the model")
answers = ask(sentences)
assert np.array_equal(first, answers[:1])
for sentence, tokens in zip(sentences, answers):
    print(f"{sentence} -> {tokenizer.decode(tokens)}")
    print(f"tokens: {tokens.tolist()}")

# 4. Let the endpoint scale by the invocations per instance, and by the utilization of its processors. The utilization only adds instances,
# because an endpoint scales in only if all of its policies allow it.
if options.scale is not None:
    scaled.register(1, 2)
    scaled.follow(
        "Invocations-ScalingPolicy",
        TargetValue=options.scale,
        PredefinedMetricSpecification={"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
    )
    scaled.follow(
        "CPUUtil-ScalingPolicy",
        TargetValue=150.0,
        CustomizedMetricSpecification=scaled.utilization("CPUUtilization"),
        DisableScaleIn=True,
    )
    dashboard = scaled.dashboard()
    asked = scaled.under_load(lambda: ask(sentences[:1]), clients=2, count=2)
    print(f"{asked} requests during the scale-out, none failed")
    scaled.wait_for(1)
    scaled.activities()
    assert sum(scaled.values()["Invocations"]) == asked + 2
    print(f"its alarms went into ALARM {scaled.alarms_went_off()} times")
    scaled.release(dashboard)

# 5. Clean up.
sm_client.delete_model(ModelName=name)
sm_client.delete_endpoint_config(EndpointConfigName=name)
sm_client.delete_endpoint(EndpointName=name)
sm_client.get_waiter("endpoint_deleted").wait(EndpointName=name)
s3_client.delete_object(Bucket=bucket, Key=f"{prefix}/t5.tar.gz")
print("done")
