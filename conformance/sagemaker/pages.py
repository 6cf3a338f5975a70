"""Tests listings with botocore's paginators, with one item a page while others are created and deleted; and invalid tokens.

python pages.py

Settings come from the environment that `galatea env` prints.
"""

import datetime
import io
import json
import time

import boto3
from archives import archive, doubling
from botocore import xform_name
from botocore.exceptions import ClientError
from statements import IMAGE, ROLE, answers, finish, proven

BUCKET = "conformance-pages"
ENDPOINT = "pages"
GROUP = {"logGroupName": "/pages/group"}
NAMES = ["page-%d" % number for number in range(4)]
TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})
POLICY = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]})
READER, WRITER = ("arn:aws:iam::aws:policy/AmazonS3%sAccess" % kind for kind in ("ReadOnly", "Full"))
ALARM = {
    "Namespace": "Pages",
    "MetricName": "one",
    "Statistic": "Sum",
    "Period": 60,
    "EvaluationPeriods": 1,
    "Threshold": 1,
    "ComparisonOperator": "GreaterThanThreshold",
}
TARGET = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/%s/variant/v" % ENDPOINT,
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
TRACKING = {
    "TargetValue": 1.0,
    "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
}
CAPACITY = {"Schedule": "rate(1 day)", "ScalableTargetAction": {"MinCapacity": 1}}
CONTAINER = {"Image": IMAGE, "ModelDataUrl": "s3://%s/model.tar.gz" % BUCKET}
VARIANT = {"VariantName": "v", "ModelName": ENDPOINT, "InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
sagemaker, cloudwatch, logs, scaling, iam, s3 = (
    boto3.client(name) for name in ("sagemaker", "cloudwatch", "logs", "application-autoscaling", "iam", "s3")
)
SERVICES = {each.meta.service_model.service_name: each for each in (sagemaker, cloudwatch, logs, scaling, iam, s3)}


def ordered(listing, key, make, drop, **given):
    """A listing of named items: its parameters, the member with the name, and functions that create and delete an item."""
    service, operation = listing.split(".")
    return {"service": service, "operation": operation, "key": key, "make": make, "drop": drop, "given": given}


LISTINGS = [
    ordered(
        "sagemaker.ListModels",
        "ModelName",
        lambda name: sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer=CONTAINER),
        lambda name: sagemaker.delete_model(ModelName=name),
        NameContains="page-",
    ),
    ordered(
        "sagemaker.ListEndpointConfigs",
        "EndpointConfigName",
        lambda name: sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[VARIANT]),
        lambda name: sagemaker.delete_endpoint_config(EndpointConfigName=name),
        NameContains="page-",
        SortBy="Name",
    ),
    ordered(
        "cloudwatch.DescribeAlarms",
        "AlarmName",
        lambda name: cloudwatch.put_metric_alarm(AlarmName=name, **ALARM),
        lambda name: cloudwatch.delete_alarms(AlarmNames=[name]),
        AlarmNamePrefix="page-",
    ),
    ordered(
        "logs.DescribeLogGroups",
        "logGroupName",
        lambda name: logs.create_log_group(logGroupName=name),
        lambda name: logs.delete_log_group(logGroupName=name),
        logGroupNamePrefix="page-",
    ),
    ordered(
        "logs.DescribeLogStreams",
        "logStreamName",
        lambda name: logs.create_log_stream(logStreamName=name, **GROUP),
        lambda name: logs.delete_log_stream(logStreamName=name, **GROUP),
        **GROUP,
    ),
    ordered(
        "application-autoscaling.DescribeScalingPolicies",
        "PolicyName",
        lambda name: scaling.put_scaling_policy(
            PolicyName=name,
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration=TRACKING,
            **TARGET,
        ),
        lambda name: scaling.delete_scaling_policy(PolicyName=name, **TARGET),
        ServiceNamespace="sagemaker",
    ),
    ordered(
        "application-autoscaling.DescribeScheduledActions",
        "ScheduledActionName",
        lambda name: scaling.put_scheduled_action(ScheduledActionName=name, **CAPACITY, **TARGET),
        lambda name: scaling.delete_scheduled_action(ScheduledActionName=name, **TARGET),
        ServiceNamespace="sagemaker",
    ),
    ordered(
        "iam.ListRoles",
        "RoleName",
        lambda name: iam.create_role(RoleName=name, Path="/pages/", AssumeRolePolicyDocument=TRUST),
        lambda name: iam.delete_role(RoleName=name),
        PathPrefix="/pages/",
    ),
    ordered(
        "iam.ListRolePolicies",
        None,
        lambda name: iam.put_role_policy(RoleName="pages", PolicyName=name, PolicyDocument=POLICY),
        lambda name: iam.delete_role_policy(RoleName="pages", PolicyName=name),
        RoleName="pages",
    ),
    *(
        ordered(
            "s3." + operation,
            "Key",
            lambda name: s3.put_object(Bucket=BUCKET, Key=name),
            lambda name: s3.delete_object(Bucket=BUCKET, Key=name),
            Bucket=BUCKET,
            Prefix="page-",
        )
        for operation in ("ListObjects", "ListObjectsV2")
    ),
    ordered(
        "s3.ListBuckets",
        "Name",
        lambda name: s3.create_bucket(Bucket=name),
        lambda name: s3.delete_bucket(Bucket=name),
        Prefix="page-",
    ),
]


def walked(row, meanwhile):
    """Returns the names on all pages. Calls `meanwhile` after each page."""
    paginator = SERVICES[row["service"]].get_paginator(xform_name(row["operation"]))
    found, lengths = [], []
    for page in paginator.paginate(PaginationConfig={"PageSize": 1}, **row["given"]):
        items = page.get(str(paginator.result_keys[0].expression), [])
        found += [item if row["key"] is None else item[row["key"]] for item in items]
        lengths.append(len(items))
        meanwhile(len(lengths))
    return found, max(lengths)


def walk(row):
    for name in NAMES:
        row["make"](name)

    def meanwhile(count):
        if count == 1:
            row["make"]("page-00-early")
            row["make"]("page-9-late")
            row["drop"](NAMES[2])

    found, longest = walked(row, meanwhile)
    staying = [name for name in found if name in (NAMES[0], NAMES[1], NAMES[3])]
    right = sorted(staying) == [NAMES[0], NAMES[1], NAMES[3]] and len(set(found)) == len(found) and longest == 1
    proven(
        "%(service)s.%(operation)s lists each item once, one a page, while others are created and deleted" % row,
        right,
        str(found),
    )
    for name in (NAMES[0], NAMES[1], NAMES[3], "page-00-early", "page-9-late"):
        row["drop"](name)


def of_texts():
    """Tests tokens of CloudWatch Logs and markers of IAM: garbage, of another listing, and of other parameters."""
    now = int(time.time() * 1000)
    lines = [{"timestamp": now, "message": "line %d" % number} for number in range(2)]
    filters = [{"metricName": "m", "metricNamespace": "Pages", "metricValue": "1"}]
    iam.attach_role_policy(RoleName="pages", PolicyArn=READER)
    iam.attach_role_policy(RoleName="pages", PolicyArn=WRITER)
    for name in NAMES[:2]:
        logs.create_log_group(logGroupName=name)
        logs.create_log_stream(logStreamName=name, **GROUP)
        logs.put_log_events(logStreamName=name, logEvents=lines, **GROUP)
        logs.put_metric_filter(filterName=name, filterPattern="", metricTransformations=filters, **GROUP)
        iam.create_role(RoleName=name, Path="/pages/", AssumeRolePolicyDocument=TRUST)
        iam.put_role_policy(RoleName="pages", PolicyName=name, PolicyDocument=POLICY)
        logs.start_query(queryString="fields @message", startTime=0, endTime=1, **GROUP)
    simulated = {"PolicySourceArn": iam.get_role(RoleName="pages")["Role"]["Arn"], "ActionNames": ["s3:Get", "s3:Put"]}
    length = {"logs": "limit", "iam": "MaxItems"}
    rows = [
        ("logs.DescribeLogGroups", {}, {"logGroupNamePrefix": "page-"}),
        ("logs.DescribeLogStreams", GROUP, {**GROUP, "descending": True}),
        ("logs.DescribeLogStreams", {**GROUP, "orderBy": "LastEventTime"}, GROUP),
        ("logs.FilterLogEvents", GROUP, {**GROUP, "filterPattern": "line"}),
        ("logs.DescribeMetricFilters", GROUP, {}),
        ("logs.DescribeQueries", {}, GROUP),
        ("iam.ListRoles", {"PathPrefix": "/pages/"}, {}),
        ("iam.ListRolePolicies", {"RoleName": "pages"}, {"RoleName": NAMES[0]}),
        ("iam.ListAttachedRolePolicies", {"RoleName": "pages"}, {"RoleName": NAMES[0]}),
        ("iam.SimulatePrincipalPolicy", simulated, {**simulated, "ActionNames": ["s3:Put", "s3:Get"]}),
    ]
    given_by = {}
    for operation, given, other in rows:
        service, name = operation.split(".")
        ask = getattr(SERVICES[service], xform_name(name))
        member, code = (
            ("nextToken", "InvalidParameterException") if service == "logs" else ("Marker", "ValidationError")
        )
        limit = "maxResults" if name == "DescribeQueries" else length[service]
        token = ask(**given, **{limit: 1})[member]
        right = member not in ask(**given, **{member: token})
        proven("%s accepts its own token, also with another page size" % operation, right)
        for kind, asked, wrong in (
            ("that is garbage", given, "garbage"),
            ("of other parameters", other, token),
            ("of another listing", given, given_by.get(service, "AAAA")),
        ):
            call = lambda: code_of(operation, **asked, **{member: wrong})
            answers("%s rejects a token %s" % (operation, kind), call, code)
        given_by[service] = token
    asked = {"logStreamName": NAMES[0], "startFromHead": True, **GROUP}
    token = logs.get_log_events(limit=1, **asked)["nextForwardToken"]
    found = logs.get_log_events(nextToken=token, startTime=now, **asked)["events"]
    proven("GetLogEvents continues from its token with other times", [each["message"] for each in found] == ["line 1"])
    for kind, stream, wrong in (("that is garbage", NAMES[0], "f/garbage"), ("of another stream", NAMES[1], token)):
        call = lambda: code_of("logs.GetLogEvents", nextToken=wrong, **{**asked, "logStreamName": stream})
        answers("GetLogEvents rejects a token %s" % kind, call, "InvalidParameterException")


def code_of(operation, **given):
    service, name = operation.split(".")
    try:
        getattr(SERVICES[service], xform_name(name))(**given)
        return "none: the call succeeded"
    except ClientError as error:
        return error.response["Error"]["Code"]


def tokens():
    """Tests garbage, tokens of another operation, and tokens of other parameters."""
    for name in NAMES[:2]:
        cloudwatch.put_metric_alarm(AlarmName=name, **ALARM)
        sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer=CONTAINER)
    of_alarms = cloudwatch.describe_alarms(AlarmNamePrefix="page-", MaxRecords=1)["NextToken"]
    of_models = sagemaker.list_models(NameContains="page-", MaxResults=1)["NextToken"]
    of_others = sagemaker.list_models(NameContains="page", MaxResults=1)["NextToken"]
    now = datetime.datetime.now(datetime.timezone.utc)
    query = {"Id": "one", "MetricStat": {"Metric": {"Namespace": "P", "MetricName": "m"}, "Period": 60, "Stat": "Sum"}}
    span = {"StartTime": now - datetime.timedelta(hours=1), "EndTime": now, "MetricDataQueries": [query]}
    sagemakers = {"Models": "ListModels", "Configs": "ListEndpointConfigs", "Endpoints": "ListEndpoints"}
    sagemakers = [*sagemakers.values(), "ListTransformJobs", "ListInferenceComponents"]
    rows = [
        *(("sagemaker." + name, {}, "ValidationException") for name in sagemakers),
        ("cloudwatch.DescribeAlarms", {}, "InvalidNextToken"),
        ("cloudwatch.DescribeAlarmHistory", {}, "InvalidNextToken"),
        ("cloudwatch.GetMetricData", span, "InvalidNextToken"),
        ("cloudwatch.ListMetrics", {}, "InvalidParameterValue"),
        ("cloudwatch.ListDashboards", {}, "InvalidParameterValue"),
        *(
            ("application-autoscaling." + name, {"ServiceNamespace": "sagemaker"}, "InvalidNextTokenException")
            for name in (
                "DescribeScalableTargets",
                "DescribeScalingActivities",
                "DescribeScalingPolicies",
                "DescribeScheduledActions",
            )
        ),
    ]
    for operation, given, code in rows:
        for kind, token in (("garbage", "garbage"), ("empty", "AAAA"), ("another's", of_alarms + of_models)):
            call = lambda: code_of(operation, NextToken=token, **given)
            answers("%s rejects a token that is %s" % (operation, kind), call, code)
    call = lambda: code_of("sagemaker.ListModels", NextToken=of_others, NameContains="page-")
    answers("ListModels rejects a token of other parameters", call, "ValidationException")
    call = lambda: code_of("sagemaker.ListModels", NextToken=of_alarms)
    answers("ListModels rejects a token of another service", call, "ValidationException")
    call = lambda: [
        each["ModelName"] for each in sagemaker.list_models(NameContains="page-", NextToken=of_models)["Models"]
    ]
    answers("ListModels accepts its own token, also with another page size", call, NAMES[:1])


s3.create_bucket(Bucket=BUCKET)
s3.upload_fileobj(io.BytesIO(archive(doubling)), BUCKET, "model.tar.gz")
sagemaker.create_model(ModelName=ENDPOINT, ExecutionRoleArn=ROLE, PrimaryContainer=CONTAINER)
sagemaker.create_endpoint_config(EndpointConfigName=ENDPOINT, ProductionVariants=[VARIANT])
sagemaker.create_endpoint(EndpointName=ENDPOINT, EndpointConfigName=ENDPOINT)
logs.create_log_group(**GROUP)
iam.create_role(RoleName="pages", AssumeRolePolicyDocument=TRUST)
sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=ENDPOINT)
scaling.register_scalable_target(MinCapacity=1, MaxCapacity=2, **TARGET)
for each in LISTINGS:
    walk(each)
tokens()
of_texts()
finish()
