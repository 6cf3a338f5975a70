"""Classifies photographs with an ensemble of DALI and Inception v3 on two endpoints, as a SageMaker user writes it.

Nothing in this file is specific to Galatea. It needs only the clients, and boto3 configured for a running platform:

    python3 -m venv .venv && .venv/bin/pip install boto3 numpy "tritonclient[http]"
    npx galatea up &
    eval "$(npx galatea env)"
    .venv/bin/python examples/boto3/image_ensemble.py MODEL_REPOSITORY PICTURE.jpg... [--sentences MODEL_REPOSITORY] [--scale]

MODEL_REPOSITORY is the output of `node examples/inception/assemble.ts MODEL_REPOSITORY PICTURE.jpg...`. That of --sentences, an ensemble with
input TEXT (BYTES, [1]) and output EMBEDDING (FP32) such as that of `npm start -- --once`, is on the same multi-model endpoint. With `--scale` that
endpoint scales from one instance to two while pictures wait, and back to one afterwards, which takes half an hour as on SageMaker. The
script deletes everything that it has created except the bucket.
"""

import argparse
import json
import os
import tarfile
import tempfile
import time

import boto3
import numpy as np
import tritonclient.http as http_client
from endpoint_scaling import ScaledEndpoint, cloudwatch_client

parser = argparse.ArgumentParser()
parser.add_argument("repository")
parser.add_argument("pictures", nargs="+")
parser.add_argument("--sentences")
parser.add_argument("--scale", action="store_true")
options = parser.parse_args()
repository, pictures = options.repository, options.pictures
stamp = time.strftime("%Y-%m-%d-%H-%M-%S", time.gmtime())
archive_name = "model_tf_dali.tar.gz"
archives = {archive_name: repository}
if options.sentences:
    archives["model_sentences.tar.gz"] = options.sentences

s3_client = boto3.client("s3")
sm_client = boto3.client("sagemaker")
runtime_sm_client = boto3.client("sagemaker-runtime")
region = boto3.Session().region_name
account = boto3.client("sts").get_caller_identity()["Account"]
role = f"arn:aws:iam::{account}:role/AmazonSageMaker-DefaultRole"
image = f"785573368785.dkr.ecr.{region}.amazonaws.com/sagemaker-tritonserver:23.03-py3"

# 1. Package the models and upload them.
bucket = f"sagemaker-{region}-{account}"
prefix = f"image-ensemble-{stamp}"
try:
    s3_client.create_bucket(Bucket=bucket)
except s3_client.exceptions.BucketAlreadyOwnedByYou:
    pass  # from an earlier run
with tempfile.TemporaryDirectory() as folder:
    for name, models in archives.items():
        path = os.path.join(folder, name)
        with tarfile.open(path, "w:gz", compresslevel=1) as archive:
            archive.add(models, arcname=".")
        s3_client.upload_file(path, bucket, f"{prefix}/{name}")

# 2. Two endpoints: one with this ensemble alone, one with all models under the prefix.
containers = {
    f"single-{stamp}": {
        "Image": image,
        "ModelDataUrl": f"s3://{bucket}/{prefix}/{archive_name}",
        "Environment": {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "ensemble_dali_inception"},
    },
    f"multi-{stamp}": {"Image": image, "ModelDataUrl": f"s3://{bucket}/{prefix}/", "Mode": "MultiModel"},
}
for name, container in containers.items():
    sm_client.create_model(ModelName=name, ExecutionRoleArn=role, PrimaryContainer=container)
    sm_client.create_endpoint_config(
        EndpointConfigName=name,
        ProductionVariants=[
            {
                "InstanceType": "ml.g4dn.4xlarge",
                "InitialVariantWeight": 1,
                "InitialInstanceCount": 1,
                "ModelName": name,
                "VariantName": "AllTraffic",
            }
        ],
    )
    sm_client.create_endpoint(EndpointName=name, EndpointConfigName=name)
for name in containers:
    sm_client.get_waiter("endpoint_in_service").wait(EndpointName=name)

# 3. Invoke both: encoded pictures, one by one, in JSON and in Triton's binary format.
with open(os.path.join(repository, "inception_graphdef", "inception_labels.txt")) as file:
    labels = file.read().splitlines()


def invoke(endpoint, body, content_type, archive=archive_name):
    target = {"TargetModel": archive} if endpoint.startswith("multi") else {}
    return runtime_sm_client.invoke_endpoint(EndpointName=endpoint, ContentType=content_type, Body=body, **target)


def by_json(endpoint, encoded):
    payload = {
        "inputs": [{"name": "INPUT", "shape": encoded.shape, "datatype": "UINT8", "data": encoded.tolist()}],
    }
    response = invoke(endpoint, json.dumps(payload), "application/octet-stream")
    return np.array(json.loads(response["Body"].read())["outputs"][0]["data"], np.float32)


def by_binary(endpoint, encoded):
    tensor = http_client.InferInput("INPUT", encoded.shape, "UINT8")
    tensor.set_data_from_numpy(encoded, binary_data=True)
    wanted = http_client.InferRequestedOutput("OUTPUT", binary_data=True)
    body, length = http_client.InferenceServerClient.generate_request_body([tensor], outputs=[wanted])
    content_type = "application/vnd.sagemaker-triton.binary+json;json-header-size="
    response = invoke(endpoint, body, f"{content_type}{length}")
    result = http_client.InferenceServerClient.parse_response_body(
        response["Body"].read(), header_length=int(response["ContentType"][len(content_type) :])
    )
    return result.as_numpy("OUTPUT")[0]


for path in pictures:
    encoded = np.fromfile(path, np.uint8)[np.newaxis]
    for endpoint in containers:
        scores = by_json(endpoint, encoded)
        assert scores.shape == (len(labels),)
        assert np.allclose(scores, by_binary(endpoint, encoded), atol=1e-6)
        best = ", ".join(f"{labels[one]} {scores[one]:.6f}" for one in np.argsort(scores)[::-1][:5])
        print(f"{os.path.basename(path)} ({endpoint.split('-')[0]}): {best}")

# 4. Another ensemble of the multi-model endpoint: the similarity of two sentences.
if options.sentences:
    sentences = ["The cat sits on the mat.", "A kitten is resting on a rug."]
    payload = {"inputs": [{"name": "TEXT", "shape": [2, 1], "datatype": "BYTES", "data": sentences}]}
    response = invoke(f"multi-{stamp}", json.dumps(payload), "application/octet-stream", "model_sentences.tar.gz")
    first, second = np.array(json.loads(response["Body"].read())["outputs"][0]["data"], np.float32).reshape(2, -1)
    print(f"sentences: {first @ second:.6f}")

# 5. Let the multi-model endpoint scale by a custom metric, the number of waiting pictures for each instance, and by the utilization of its
# GPUs, if it has some. The utilization only adds instances, because an endpoint scales in only if all of its policies allow it.
if options.scale:
    scaled = ScaledEndpoint(f"multi-{stamp}")
    scaled.register(1, 2)
    metric = {"MetricName": "PicturesWaiting", "Dimensions": scaled.dimensions}
    scaled.follow(
        "Waiting-ScalingPolicy",
        TargetValue=3.0,
        CustomizedMetricSpecification={**metric, "Namespace": "ImageEnsemble", "Statistic": "Average"},
    )
    scaled.follow(
        "GPUUtil-ScalingPolicy",
        TargetValue=60.0,
        CustomizedMetricSpecification=scaled.utilization("GPUUtilization"),
        DisableScaleIn=True,
    )
    dashboard = scaled.dashboard()
    clients = 4

    def tell(waiting):
        waiting_per_instance = waiting / (scaled.instances() or 1)
        datum = {**metric, "Value": waiting_per_instance, "Unit": "Count"}
        cloudwatch_client.put_metric_data(Namespace="ImageEnsemble", MetricData=[datum])

    before = sum(scaled.values()["Invocations"])
    encoded = np.fromfile(pictures[0], np.uint8)[np.newaxis]
    asked = scaled.under_load(
        lambda: by_binary(scaled.endpoint, encoded), clients=clients, count=2, each_time=lambda: tell(clients)
    )
    print(f"{asked} pictures during the scale-out, none failed")
    scaled.wait_for(1, each_time=lambda: tell(0))
    scaled.activities()
    assert sum(scaled.values()["Invocations"]) == before + asked
    print(f"its alarms went into ALARM {scaled.alarms_went_off()} times")
    scaled.release(dashboard)

# 6. Clean up.
for name in containers:
    sm_client.delete_model(ModelName=name)
    sm_client.delete_endpoint_config(EndpointConfigName=name)
    sm_client.delete_endpoint(EndpointName=name)
    sm_client.get_waiter("endpoint_deleted").wait(EndpointName=name)
for name in archives:
    s3_client.delete_object(Bucket=bucket, Key=f"{prefix}/{name}")
print("done")
