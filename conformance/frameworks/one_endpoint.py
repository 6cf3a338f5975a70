"""Invokes two ensembles and a T5 on one multi-model endpoint concurrently while each archive is replaced, reloaded and its old version unloaded.

python one_endpoint.py EXPECTED.json

EXPECTED.json has the repository of each by its name under "archives", and under each name the requests and expected responses.
"""

import collections
import json
import os
import sys
import tarfile
import tempfile
import threading
import time

import boto3
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sagemaker"))
from statements import BUCKET, IMAGE, ROLE, finish, proven, runtime, s3, sagemaker

with open(sys.argv[1]) as file:
    EXPECTED = json.load(file)
NAME = "one-endpoint"
# Number of requests of each kind before, during and after the replacement of archives.
ANSWERS = 4
LIMIT_SECONDS = 240


def put(name, version):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "archive.tar.gz")
        marker = os.path.join(folder, "version")
        with open(marker, "w") as file:
            file.write(version)
        with tarfile.open(path, "w:gz", compresslevel=0) as archive:
            for model in os.listdir(EXPECTED["archives"][name]):
                archive.add(os.path.join(EXPECTED["archives"][name], model), arcname=model)
                # Writes an archive with other bytes, and so another object, of the same model.
                archive.add(marker, arcname=model + "/version.txt")
        s3.upload_file(path, BUCKET, "one/%s.tar.gz" % name)


def ask(target, inputs):
    body = json.dumps({"inputs": inputs})
    reply = runtime.invoke_endpoint(
        EndpointName=NAME, ContentType="application/octet-stream", Body=body, TargetModel=target + ".tar.gz"
    )
    output = json.loads(reply["Body"].read())["outputs"][0]
    return np.array(output["data"]).reshape(output["shape"])


def tensor(name, datatype, rows):
    return {"name": name, "shape": list(np.shape(rows)), "datatype": datatype, "data": rows}


def images(each):
    encoded = np.fromfile(each["path"], np.uint8)[np.newaxis]
    scores = ask("images", [tensor("INPUT", "UINT8", encoded.tolist())])
    return np.allclose(scores[0], each["scores"], atol=1e-4)


def sentences(each):
    found = ask("sentences", [tensor("TEXT", "BYTES", [[each["text"]]])])
    return np.allclose(found[0], each["embedding"], atol=1e-5)


def t5(each):
    ids = each["tokens"] + [0] * (32 - len(each["tokens"]))
    mask = [1] * len(each["tokens"]) + [0] * (32 - len(each["tokens"]))
    found = ask("t5", [tensor("input_ids", "INT32", [ids]), tensor("attention_mask", "INT32", [mask])])
    return found[0].tolist() == each["answer"]


KINDS = {"images": images, "sentences": sentences, "t5": t5}
right = collections.Counter()
wrong = []
told = threading.Condition()
over = threading.Event()


def load(kind):
    """Sends its requests one after another without a pause."""
    index = 0
    while not over.is_set():
        try:
            each = EXPECTED[kind][index % len(EXPECTED[kind])]
            failure = None if KINDS[kind](each) else "a wrong response to %r" % index
        except runtime.exceptions.ModelNotReadyException:
            # A load may exceed the time limit of an invocation: clients retry after SageMaker's error.
            continue
        except Exception as error:
            failure = repr(error)
        index += 1
        with told:
            if failure is None:
                right[kind] += 1
            else:
                wrong.append("%s: %s" % (kind, failure))
            told.notify_all()


def more_answers():
    """Returns whether each kind got that many more responses, all of them correct."""
    with told:
        before = dict(right)
        told.wait_for(
            lambda: wrong or all(right[kind] - before.get(kind, 0) >= ANSWERS for kind in KINDS), LIMIT_SECONDS
        )
        return not wrong and all(right[kind] - before.get(kind, 0) >= ANSWERS for kind in KINDS)


def samples(metric):
    reply = boto3.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/SageMaker",
        MetricName=metric,
        Dimensions=[{"Name": "EndpointName", "Value": NAME}, {"Name": "VariantName", "Value": "AllTraffic"}],
        StartTime=time.time() - 3600,
        EndTime=time.time() + 120,
        Period=60,
        Statistics=["SampleCount"],
    )
    return sum(point["SampleCount"] for point in reply["Datapoints"])


s3.create_bucket(Bucket=BUCKET)
for kind in KINDS:
    put(kind, "1")
container = {"Image": IMAGE, "ModelDataUrl": "s3://%s/one/" % BUCKET, "Mode": "MultiModel"}
sagemaker.create_model(ModelName=NAME, ExecutionRoleArn=ROLE, PrimaryContainer=container)
variant = {"VariantName": "AllTraffic", "ModelName": NAME, "InitialInstanceCount": 1, "InstanceType": "ml.g5.2xlarge"}
sagemaker.create_endpoint_config(EndpointConfigName=NAME, ProductionVariants=[variant])
sagemaker.create_endpoint(EndpointName=NAME, EndpointConfigName=NAME)
sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=NAME)

threads = [threading.Thread(target=load, args=(kind,)) for kind in (*KINDS, "sentences")]
for thread in threads:
    thread.start()
try:
    proven("all three respond together as they do alone", more_answers(), wrong or dict(right))
    for kind in KINDS:
        put(kind, "2")
    proven("all models keep responding while each of them is replaced", more_answers(), wrong or dict(right))
    # An old version is unloaded after its last request.
    end = time.monotonic() + LIMIT_SECONDS
    while samples("ModelUnloadingTime") < len(KINDS) and time.monotonic() < end and not wrong:
        more_answers()
    found = {metric: samples(metric) for metric in ("ModelLoadingTime", "ModelUnloadingTime")}
    proven("each was loaded twice and unloaded once", found == {"ModelLoadingTime": 6, "ModelUnloadingTime": 3}, found)
    proven("the new versions respond as the old ones did", more_answers(), wrong or dict(right))
finally:
    over.set()
    for thread in threads:
        thread.join()
proven("no response was wrong, and no request was rejected", not wrong, wrong)
finish()
