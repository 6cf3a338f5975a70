"""Deploys the model add_sub with boto3 on an endpoint and waits until it is in service, as a SageMaker user writes it.

    python deploy.py NAME

Model, endpoint configuration and endpoint get the name. The archive is s3://sagemaker-<region>-<account>/add_sub.tar.gz.
"""

import io
import os
import sys
import tarfile

import boto3

(name,) = sys.argv[1:]
s3, sagemaker = boto3.client("s3"), boto3.client("sagemaker")
region = boto3.Session().region_name
account = boto3.client("sts").get_caller_identity()["Account"]
bucket = f"sagemaker-{region}-{account}"
try:
    s3.create_bucket(Bucket=bucket)
except s3.exceptions.BucketAlreadyOwnedByYou:
    pass  # from an earlier run

buffer = io.BytesIO()
with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
    archive.add(os.path.join(os.path.dirname(os.path.abspath(__file__)), "models"), arcname=".")
s3.put_object(Bucket=bucket, Key="add_sub.tar.gz", Body=buffer.getvalue())
sagemaker.create_model(
    ModelName=name,
    ExecutionRoleArn=f"arn:aws:iam::{account}:role/{name}",
    PrimaryContainer={
        "Image": f"785573368785.dkr.ecr.{region}.amazonaws.com/sagemaker-tritonserver:23.03-py3",
        "ModelDataUrl": f"s3://{bucket}/add_sub.tar.gz",
    },
)
variant = {"VariantName": "main", "ModelName": name, "InstanceType": "ml.c5.large", "InitialInstanceCount": 1}
sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=name)
print("endpoint", name, "InService")
