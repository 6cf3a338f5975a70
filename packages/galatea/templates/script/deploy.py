"""Uploads model/ as an archive, creates an endpoint of it, and invokes it. Needs boto3, and a platform (`galatea env`)."""

import io
import pathlib
import tarfile
import time

import boto3

NAME = time.strftime("first-script-%Y%m%d-%H%M%S")
BUCKET = "models"
IMAGE = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-scikit-learn:1.2-1-cpu-py3"
ROLE = "arn:aws:iam::000000000000:role/AmazonSageMaker-DefaultRole"

archive = io.BytesIO()
with tarfile.open(fileobj=archive, mode="w:gz") as tar:
    tar.add(pathlib.Path(__file__).parent / "model", arcname=".")

s3 = boto3.client("s3")
s3.create_bucket(Bucket=BUCKET)
s3.put_object(Bucket=BUCKET, Key=f"{NAME}.tar.gz", Body=archive.getvalue())

sagemaker = boto3.client("sagemaker")
container = {
    "Image": IMAGE,
    "ModelDataUrl": f"s3://{BUCKET}/{NAME}.tar.gz",
    "Environment": {
        "SAGEMAKER_PROGRAM": "inference.py",
        "SAGEMAKER_SUBMIT_DIRECTORY": "/opt/ml/model/code",
    },
}
variant = {
    "VariantName": "AllTraffic",
    "ModelName": NAME,
    "InstanceType": "ml.t2.medium",
    "InitialInstanceCount": 1,
}
sagemaker.create_model(ModelName=NAME, PrimaryContainer=container, ExecutionRoleArn=ROLE)
sagemaker.create_endpoint_config(EndpointConfigName=NAME, ProductionVariants=[variant])
sagemaker.create_endpoint(EndpointName=NAME, EndpointConfigName=NAME)
sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=NAME, WaiterConfig={"Delay": 1})
print(f"endpoint {NAME} is InService")

runtime = boto3.client("sagemaker-runtime")
response = runtime.invoke_endpoint(EndpointName=NAME, ContentType="application/json", Body="[[1, 2, 3], [4, 5, 6]]")
print(response["Body"].read().decode())
