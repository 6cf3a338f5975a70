"""Creates resources that several scripts need: an endpoint with one model, and the policy that starts the first instance or copy."""

import boto3
from archives import archive
from statements import IMAGE, ROLE, s3, sagemaker


def deployed(name, files, environment=None, **config):
    """Creates model, configuration, endpoint and bucket of one name from the files of a Triton repository, and waits for the endpoint."""
    s3.create_bucket(Bucket=name)
    s3.put_object(Bucket=name, Key="model.tar.gz", Body=archive(files))
    container = {
        "Image": IMAGE,
        "ModelDataUrl": "s3://%s/model.tar.gz" % name,
        "Environment": environment or {},
    }
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer=container)
    variant = {
        "VariantName": "AllTraffic",
        "ModelName": name,
        "InstanceType": "ml.m5.large",
        "InitialInstanceCount": 1,
    }
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant], **config)
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=name)


def removed(name):
    sagemaker.delete_endpoint(EndpointName=name)
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=name)


def woken(target, policy, alarm, cooldown, **watched):
    """Adds an instance or copy while a metric is 1 or more: the way in which SageMaker's guides scale out from zero."""
    made = boto3.client("application-autoscaling").put_scaling_policy(
        PolicyName=policy,
        PolicyType="StepScaling",
        StepScalingPolicyConfiguration={
            "AdjustmentType": "ChangeInCapacity",
            "MetricAggregationType": watched["Statistic"],
            "Cooldown": cooldown,
            "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}],
        },
        **target,
    )
    boto3.client("cloudwatch").put_metric_alarm(
        AlarmName=alarm,
        AlarmActions=[made["PolicyARN"]],
        Namespace="AWS/SageMaker",
        Threshold=1,
        ComparisonOperator="GreaterThanOrEqualToThreshold",
        TreatMissingData="missing",
        **watched,
    )
