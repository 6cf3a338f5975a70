"""Tests batch transform with boto3 and the sagemaker SDK v2's Transformer.

    python transform.py jobs|begin|resumed

Settings come from the environment that `galatea env` prints. `begin` leaves a running job, whose end `resumed` checks after the
platform was killed and started again. The exit code is 1 if a check fails.
"""

import json
import sys
import time

import boto3
from archives import archive
from statements import IMAGE, ROLE, finish, proven, refused, s3, sagemaker

BUCKET = "conformance-transform"
MODEL = "conformance-transform"
SLOW_OBJECTS = 12

PROGRAM = """
import time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            time.sleep(float(x.flat[0]) / 1000)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", (x * 2).astype(np.float32))]))
        return responses
"""
CONFIG = """
name: "double"
backend: "python"
max_batch_size: 0
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


def deploy():
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(
        Bucket=BUCKET, Key="model.tar.gz", Body=archive({"double/config.pbtxt": CONFIG, "double/1/model.py": PROGRAM})
    )
    container = {"Image": IMAGE, "ModelDataUrl": "s3://%s/model.tar.gz" % BUCKET}
    sagemaker.create_model(ModelName=MODEL, ExecutionRoleArn=ROLE, PrimaryContainer=container)


def row(*values):
    return json.dumps({"inputs": [{"name": "X", "shape": [len(values)], "datatype": "FP32", "data": list(values)}]})


def create(name, prefix, **more):
    request = {
        "TransformJobName": name,
        "ModelName": MODEL,
        "BatchStrategy": "SingleRecord",
        "TransformInput": {
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://%s/%s" % (BUCKET, prefix)}},
            "ContentType": "application/json",
            "SplitType": "Line",
        },
        "TransformOutput": {
            "S3OutputPath": "s3://%s/out/%s" % (BUCKET, name),
            "Accept": "application/json",
            "AssembleWith": "Line",
        },
        "TransformResources": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1},
    }
    return sagemaker.create_transform_job(**dict(request, **more))


def output(name, key):
    text = s3.get_object(Bucket=BUCKET, Key="out/%s/%s.out" % (name, key))["Body"].read().decode()
    return [json.loads(line) for line in text.splitlines()]


def keys(name):
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix="out/%s/" % name)
    return {each["Key"].split("/")[-1]: each["ETag"] for each in listed.get("Contents", [])}


def done(name, state="Completed"):
    waiter = sagemaker.get_waiter("transform_job_completed_or_stopped")
    waiter.wait(TransformJobName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 600})
    reply = sagemaker.describe_transform_job(TransformJobName=name)
    proven("the job %s is %s" % (name, state), reply["TransformJobStatus"] == state, reply.get("FailureReason", ""))
    return reply


def jobs():
    s3.put_object(Bucket=BUCKET, Key="in/a.jsonl", Body="\n".join(row(at) for at in range(50)))
    s3.put_object(Bucket=BUCKET, Key="in/sub/b.jsonl", Body=row(1, 2))
    reply = create("lines", "in/", MaxConcurrentTransforms=4)
    proven("the ARN", reply["TransformJobArn"].endswith(":transform-job/lines"), reply["TransformJobArn"])
    reply = done("lines")
    proven("the job has its creation, start and end times", reply["TransformStartTime"] <= reply["TransformEndTime"])
    answers = [each["outputs"][0]["data"] for each in output("lines", "a.jsonl")]
    proven("the output has the order of the records", answers == [[2.0 * at] for at in range(50)], str(answers[:5]))
    proven(
        "outputs keep the paths below the prefix", output("lines", "sub/b.jsonl")[0]["outputs"][0]["data"] == [2.0, 4.0]
    )
    joined()
    failures()
    listing()
    stopped()
    logs()
    metrics()
    sdk()


def joined():
    processing = {"JoinSource": "Input", "OutputFilter": "$['id','SageMakerOutput']", "InputFilter": "$.request"}
    body = "\n".join('{"id": %d, "request": %s}' % (10**18 + at, row(at)) for at in range(3))
    s3.put_object(Bucket=BUCKET, Key="join/a.jsonl", Body=body)
    create("joined", "join/", DataProcessing=processing)
    done("joined")
    rows = output("joined", "a.jsonl")
    proven("the output is joined with the input", [each["id"] for each in rows] == [10**18 + at for at in range(3)])
    proven(
        "the joined output has the model's output",
        rows[2]["SageMakerOutput"]["outputs"][0]["data"] == [4.0],
        str(rows[2]),
    )


def failures():
    refused("a used name is rejected", "ResourceInUse", "must be unique", lambda: create("lines", "in/"))
    absent = lambda: sagemaker.describe_transform_job(TransformJobName="nobody")
    refused(
        "an unknown job is an error", "ValidationException", "Could not find requested job with name: nobody", absent
    )
    ended = lambda: sagemaker.stop_transform_job(TransformJobName="lines")
    refused("stopping an ended job is an error", "ValidationException", "is in status Completed", ended)
    capture = {"DestinationS3Uri": "s3://%s/captured" % BUCKET}
    refused(
        "unsupported members are rejected",
        "ValidationException",
        "DataCaptureConfig",
        lambda: create("x", "in/", DataCaptureConfig=capture),
    )
    s3.put_object(Bucket=BUCKET, Key="mixed/bad.jsonl", Body="{}")
    s3.put_object(Bucket=BUCKET, Key="mixed/good.jsonl", Body=row(3))
    create("mixed", "mixed/")
    try:
        done("mixed", "Failed")
    except Exception as error:
        proven(
            "the waiter fails for a failed job",
            "TransformJobStatus" in str(error) or "failure" in str(error),
            str(error),
        )
    reply = sagemaker.describe_transform_job(TransformJobName="mixed")
    text = reply.get("FailureReason", "")
    proven(
        "the FailureReason has the object and the container's error",
        "mixed/bad.jsonl" in text and "(500)" in text,
        text,
    )
    proven("outputs of other objects remain", list(keys("mixed")) == ["good.jsonl.out"], str(keys("mixed")))


def listing():
    names = [each["TransformJobName"] for each in sagemaker.list_transform_jobs(SortBy="Name")["TransformJobSummaries"]]
    proven("jobs are listed", names == ["mixed", "lines", "joined"], str(names))
    only = sagemaker.list_transform_jobs(StatusEquals="Failed")["TransformJobSummaries"]
    proven("jobs are listed by status", [each["TransformJobName"] for each in only] == ["mixed"])


def stopped():
    s3.put_object(Bucket=BUCKET, Key="long/a.jsonl", Body=row(60000))
    create("stopped", "long/")
    sagemaker.stop_transform_job(TransformJobName="stopped")
    done("stopped", "Stopped")
    proven("a stopped job writes no output", keys("stopped") == {})


def logs():
    client = boto3.client("logs")
    group = "/aws/sagemaker/TransformJobs"
    names = [each["logStreamName"] for each in client.describe_log_streams(logGroupName=group)["logStreams"]]
    proven(
        "there is one log stream for each instance and one for the job",
        sum(name.startswith("lines/") for name in names) == 2,
        str(names),
    )
    events = client.get_log_events(logGroupName=group, logStreamName="lines/data-log", startFromHead=True)["events"]
    proven(
        "the job's stream has its progress",
        any("transformed s3://%s/in/a.jsonl" % BUCKET in each["message"] for each in events),
    )


def metrics():
    client = boto3.client("cloudwatch")
    now = time.time()

    def total(namespace, name, dimension, value):
        points = client.get_metric_statistics(
            Namespace=namespace,
            MetricName=name,
            Dimensions=[{"Name": dimension, "Value": value}],
            StartTime=now - 3600,
            EndTime=now + 120,
            Period=60,
            Statistics=["Sum"],
        )["Datapoints"]
        return sum(point["Sum"] for point in points) if points else None

    of_job = lambda job, name: total("Galatea/TransformJobs", name, "TransformJobName", job)
    proven("CloudWatch counts the objects", of_job("lines", "ObjectsTransformed") == 2)
    lengths = [each["Size"] for each in s3.list_objects_v2(Bucket=BUCKET, Prefix="out/lines/")["Contents"]]
    proven("CloudWatch counts the written bytes", of_job("lines", "BytesWritten") == sum(lengths), str(lengths))
    counts = [of_job("mixed", name) for name in ("ObjectsTransformed", "ObjectsFailed")]
    proven("CloudWatch counts failed objects separately", counts == [1, 1], str(counts))
    namespace = "/aws/sagemaker/TransformJobs"
    listed = client.get_paginator("list_metrics").paginate(Namespace=namespace, MetricName="Invocations")
    hosts = [each["Dimensions"][0]["Value"] for page in listed for each in page["Metrics"]]
    of_lines = [host for host in hosts if host.startswith("lines/i-")]
    proven("metrics of a job's instance have the dimension Host", len(of_lines) == 1, str(hosts))
    asked = total(namespace, "Invocations", "Host", of_lines[0])
    proven("a Host has its number of requests", asked == 51, str(asked))
    proven("a Host has no failed requests", total(namespace, "InvocationModelErrors", "Host", of_lines[0]) == 0)
    latency = total(namespace, "ModelLatency", "Host", of_lines[0])
    proven("a Host has its latencies", latency is not None and latency > 0, str(latency))


def sdk():
    from sagemaker.session import Session
    from sagemaker.transformer import Transformer

    transformer = Transformer(
        model_name=MODEL,
        instance_count=1,
        instance_type="ml.m5.xlarge",
        strategy="SingleRecord",
        assemble_with="Line",
        output_path="s3://%s/out/sdk" % BUCKET,
        sagemaker_session=Session(),
    )
    transformer.transform(
        "s3://%s/in/" % BUCKET, content_type="application/json", split_type="Line", job_name="sdk", wait=False
    )
    done("sdk")
    found = [each["outputs"][0]["data"] for each in output("sdk", "a.jsonl")]
    proven("the SDK's Transformer", found == [[2.0 * at] for at in range(50)], str(found[:5]))


def begin():
    for at in range(SLOW_OBJECTS):
        s3.put_object(Bucket=BUCKET, Key="slow/%02d" % at, Body=row(400))
    create("resumed", "slow/")
    while len(keys("resumed")) < 4:
        time.sleep(0.05)
    s3.put_object(Bucket=BUCKET, Key="before.json", Body=json.dumps(sorted(keys("resumed"))))


def resumed():
    before = json.loads(s3.get_object(Bucket=BUCKET, Key="before.json")["Body"].read())
    done("resumed")
    found = [output("resumed", "%02d" % at)[0]["outputs"][0]["data"] for at in range(SLOW_OBJECTS)]
    proven("every output exists", found == [[800.0]] * SLOW_OBJECTS, str(found))
    client = boto3.client("logs")
    group = "/aws/sagemaker/TransformJobs"
    events = client.get_log_events(logGroupName=group, logStreamName="resumed/data-log", startFromHead=True)["events"]
    told = [each["message"].split(" ")[2].split("/")[-1] for each in events if " transformed s3://" in each["message"]]
    # Only an object whose completion was not on disk yet may be processed twice.
    twice = [key for key in set(told) if told.count(key) > 1]
    proven(
        "completed objects are not processed again",
        len(twice) <= 1 and not set(twice) & {k[:2] for k in before[:3]},
        str(told),
    )


{"deploy": deploy, "jobs": jobs, "begin": begin, "resumed": resumed}[sys.argv[1]]()
finish()
