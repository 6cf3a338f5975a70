"""Deploys ResNet-50 of several frameworks on one multi-model endpoint with autoscaling, as a SageMaker user writes it.

Nothing in this file is specific to Galatea. It needs only the clients, and boto3 configured for a running platform:

    python3 -m venv .venv && .venv/bin/pip install boto3 numpy pillow "tritonclient[http]"
    npx galatea up &
    eval "$(npx galatea env)"
    .venv/bin/python examples/resnet50/autoscaled_endpoint.py MODEL_REPOSITORY... --pictures PICTURE.jpg...

Each MODEL_REPOSITORY has the model `resnet` (that of `resnet50.py write`, or with a GPU also one with its TensorRT plan) and
becomes a model of the endpoint. The script deletes everything that it has created except the bucket.
"""

import argparse
import datetime
import json
import os
import tarfile
import tempfile
import time

import boto3
import numpy as np
from classify import pixels

parser = argparse.ArgumentParser()
parser.add_argument("repositories", nargs="+")
parser.add_argument("--pictures", nargs="+", required=True)
options = parser.parse_args()
archives = {f"resnet_v{number}.tar.gz": path for number, path in enumerate(options.repositories)}
stamp = time.strftime("%Y-%m-%d-%H-%M-%S", time.gmtime())

s3_client = boto3.client("s3")
sm_client = boto3.client("sagemaker")
runtime_sm_client = boto3.client("sagemaker-runtime")
auto_scaling_client = boto3.client("application-autoscaling")
cloudwatch_client = boto3.client("cloudwatch")
region = boto3.Session().region_name
account = boto3.client("sts").get_caller_identity()["Account"]
role = f"arn:aws:iam::{account}:role/AmazonSageMaker-DefaultRole"
image = f"785573368785.dkr.ecr.{region}.amazonaws.com/sagemaker-tritonserver:23.03-py3"

# 1. Package the models and upload them.
bucket = f"sagemaker-{region}-{account}"
prefix = f"resnet-mme-gpu-{stamp}"
try:
    s3_client.create_bucket(Bucket=bucket)
except s3_client.exceptions.BucketAlreadyOwnedByYou:
    pass  # from an earlier run
with tempfile.TemporaryDirectory() as folder:
    for name, repository in archives.items():
        path = os.path.join(folder, name)
        with tarfile.open(path, "w:gz", compresslevel=0) as archive:
            archive.add(os.path.join(repository, "resnet"), arcname="resnet")
        s3_client.upload_file(path, bucket, f"{prefix}/{name}")

# 2. A multi-model endpoint of two instances.
endpoint = f"{prefix}-ep"
container = {"Image": image, "ModelDataUrl": f"s3://{bucket}/{prefix}/", "Mode": "MultiModel"}
sm_client.create_model(ModelName=endpoint, ExecutionRoleArn=role, PrimaryContainer=container)
sm_client.create_endpoint_config(
    EndpointConfigName=endpoint,
    ProductionVariants=[
        {
            "InstanceType": "ml.g4dn.4xlarge",
            "InitialVariantWeight": 1,
            "InitialInstanceCount": 2,
            "ModelName": endpoint,
            "VariantName": "AllTraffic",
        }
    ],
)
sm_client.create_endpoint(EndpointName=endpoint, EndpointConfigName=endpoint)
sm_client.get_waiter("endpoint_in_service").wait(EndpointName=endpoint)

# 3. Invoke each model with the pictures.
batch = np.stack([pixels(path) for path in options.pictures])
tensor = {"name": "INPUT__0", "shape": batch.shape, "datatype": "FP32", "data": batch.ravel().tolist()}
invocations = 0
for name in archives:
    response = runtime_sm_client.invoke_endpoint(
        EndpointName=endpoint,
        ContentType="application/octet-stream",
        Body=json.dumps({"inputs": [tensor]}),
        TargetModel=name,
    )
    invocations += 1
    output = json.loads(response["Body"].read())["outputs"][0]
    scores = np.array(output["data"], np.float32).reshape(output["shape"])
    for path, row in zip(options.pictures, scores):
        print(f"{name}: {os.path.basename(path)} is class {row.argmax()} ({row.max():.4f})")

# 4. Scale from one instance to five, by the utilization of the GPUs and the invocations per instance and minute.
variant = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": f"endpoint/{endpoint}/variant/AllTraffic",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
dimensions = [{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": "AllTraffic"}]
auto_scaling_client.register_scalable_target(**variant, MinCapacity=1, MaxCapacity=5)
cooldowns = {"ScaleInCooldown": 600, "ScaleOutCooldown": 200}
policies = {
    "GPUUtil-ScalingPolicy": {
        "TargetValue": 60.0,
        "CustomizedMetricSpecification": {
            "MetricName": "GPUUtilization",
            "Namespace": "/aws/sagemaker/Endpoints",
            "Dimensions": dimensions,
            "Statistic": "Average",
            "Unit": "Percent",
        },
    },
    "Invocations-ScalingPolicy": {
        "TargetValue": 1000.0,
        "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
    },
}
for name, policy in policies.items():
    made = auto_scaling_client.put_scaling_policy(
        **variant,
        PolicyName=name,
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={**policy, **cooldowns},
    )
    alarms = cloudwatch_client.describe_alarms(AlarmNames=[alarm["AlarmName"] for alarm in made["Alarms"]])
    for alarm in sorted(alarms["MetricAlarms"], key=lambda each: -each["Threshold"]):
        print(f"{name}: {alarm['ComparisonOperator']} {alarm['Threshold']:g} for {alarm['EvaluationPeriods']} min")

# 5. Print the endpoint's metrics.
now = datetime.datetime.now(datetime.timezone.utc)
metrics = [
    ("Invocations", "AWS/SageMaker", "Sum"),
    ("Invocation4XXErrors", "AWS/SageMaker", "Sum"),
    ("ModelLatency", "AWS/SageMaker", "Maximum"),
    ("ModelLoadingWaitTime", "AWS/SageMaker", "Maximum"),
    ("ModelCacheHit", "AWS/SageMaker", "Average"),
    ("LoadedModelCount", "/aws/sagemaker/Endpoints", "Maximum"),
]
found = cloudwatch_client.get_metric_data(
    StartTime=now - datetime.timedelta(minutes=10),
    EndTime=now + datetime.timedelta(minutes=1),
    MetricDataQueries=[
        {
            "Id": f"m{number}",
            "Label": name,
            "MetricStat": {
                "Metric": {"Namespace": namespace, "MetricName": name, "Dimensions": dimensions},
                "Period": 3600,
                "Stat": statistic,
            },
        }
        for number, (name, namespace, statistic) in enumerate(metrics)
    ],
)
values = {result["Label"]: result["Values"] for result in found["MetricDataResults"]}
for name, one in values.items():
    print(f"{name}: {one[0]:g}" if one else f"{name}: no datapoints yet")
assert sum(values["Invocations"]) == invocations

# 6. Clean up.
for name in policies:
    auto_scaling_client.delete_scaling_policy(**variant, PolicyName=name)
auto_scaling_client.deregister_scalable_target(**variant)
sm_client.delete_model(ModelName=endpoint)
sm_client.delete_endpoint_config(EndpointConfigName=endpoint)
sm_client.delete_endpoint(EndpointName=endpoint)
sm_client.get_waiter("endpoint_deleted").wait(EndpointName=endpoint)
for name in archives:
    s3_client.delete_object(Bucket=bucket, Key=f"{prefix}/{name}")
print("done")
