"""Deploys the containers of SageMaker's algorithms with boto3 and the sagemaker SDK v2: images, responses, errors, pipelines, multi-model endpoints.

    python algorithms.py boto3|sdk

XGBoost's models are those of `conformance/vectors/xgboost-models.json`, with XGBoost's own predictions. Linear learner's are written
byte by byte, and so are pipelines of Spark ML; their expected responses are computed here, too.
"""

import base64
import json
import pathlib
import sys

from archives import archive
from linear import linear_files
from sagemaker import image_uris
from statements import POLL_SECONDS, ROLE, answers, finish, proven, refused, runtime, s3, sagemaker

REGION = sagemaker.meta.region_name
VECTORS = json.loads((pathlib.Path(__file__).parent.parent / "vectors" / "xgboost-models.json").read_text())
BUCKET = "conformance-algorithms-" + sys.argv[1]
WHOLE = [index for index, row in enumerate(VECTORS["rows"]) if None not in row]
LINEAR = {"plain": ([1.0, -2.0, 0.5, 4.0], 0.25), "other": ([0.0, 0.0, 0.0, 1.0], -1.0)}
MEANS = [10.0, -20.0, 0.5, 100.0]


def put(key, files):
    s3.put_object(Bucket=BUCKET, Key=key, Body=archive(files))
    return "s3://%s/%s" % (BUCKET, key)


def xgboost_files(objective, form):
    model = next(each for each in VECTORS["models"] if each["objective"] == objective and form in each["files"])
    return {"xgboost-model": base64.b64decode(model["files"][form])}


def xgboost_predictions(objective):
    return next(each for each in VECTORS["models"] if each["objective"] == objective)["predictions"]


def linear_score(name, row):
    weights, bias = LINEAR[name]
    return sum(weight * value for weight, value in zip(weights, row)) + bias


COLUMNS = ["a", "b", "c", "d"]
SCHEMA = {
    "input": [{"name": name, "type": "double"} for name in COLUMNS],
    "output": {"name": "features", "type": "double", "struct": "vector"},
}


def spark_files():
    """A pipeline that makes a vector of four columns and subtracts their means."""
    node = lambda inputs, outputs: {
        "name": "node",
        "shape": {
            side: [{"port": port, "name": name} for port, name in sockets]
            for side, sockets in (("inputs", inputs), ("outputs", outputs))
        },
    }
    scalar = {"base": "scalar", "isNullable": True}
    files = {
        "bundle.json": {"format": "json", "name": "pipeline", "version": "0.20.0"},
        "root/model.json": {
            "op": "pipeline",
            "attributes": {"nodes": {"type": "list", "string": ["assemble", "shift"]}},
        },
        "root/node.json": node([], []),
        "root/assemble.node/model.json": {
            "op": "vector_assembler",
            "attributes": {"input_shapes": {"type": "list", "data_shape": [scalar] * 4}},
        },
        "root/assemble.node/node.json": node(
            [("input%d" % index, name) for index, name in enumerate(COLUMNS)], [("output", "vector")]
        ),
        "root/shift.node/model.json": {
            "op": "standard_scaler",
            "attributes": {
                "mean": {"type": "tensor", "double": MEANS, "shape": {"dimensions": [{"size": 4, "name": ""}]}}
            },
        },
        "root/shift.node/node.json": node([("input", "vector")], [("output", "features")]),
    }
    return {path: json.dumps(content).encode() for path, content in files.items()}


def create(name, **model):
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE, **model)
    variant = {
        "InstanceType": "ml.m5.xlarge",
        "InitialInstanceCount": 1,
        "ModelName": name,
        "VariantName": "AllTraffic",
    }
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)


def served(name, **model):
    create(name, **model)
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=name)


def ask(endpoint, body, content_type="text/csv", **more):
    reply = runtime.invoke_endpoint(EndpointName=endpoint, ContentType=content_type, Body=body, **more)
    return reply["ContentType"], reply["Body"].read().decode()


def csv(rows):
    return "\n".join(",".join("" if value is None else repr(value) for value in row) for row in rows)


def near(text, expected):
    found = [float(each) for each in text.split()]
    return len(found) == len(expected) and all(abs(a - b) <= 1e-5 for a, b in zip(found, expected))


def image(name, version=None):
    return image_uris.retrieve(name, REGION, version=version)


def with_boto3():
    s3.create_bucket(Bucket=BUCKET)
    xgboost()
    linear_learner()
    sparkml()
    broken()


def xgboost():
    url = put("xgboost.tar.gz", xgboost_files("binary:logistic", "pickle4"))
    served("xgboost", PrimaryContainer={"Image": image("xgboost", "1.7-1"), "ModelDataUrl": url})
    content_type, text = ask("xgboost", csv(VECTORS["rows"]))
    proven("XGBoost responds with CSV by default", content_type.startswith("text/csv"), content_type)
    proven("the response has XGBoost's own predictions", near(text, xgboost_predictions("binary:logistic")), text)
    _, text = ask("xgboost", csv(VECTORS["rows"]), Accept="application/json")
    scores = [each["score"] for each in json.loads(text)["predictions"]]
    proven("or JSON", near(" ".join(map(str, scores)), xgboost_predictions("binary:logistic")), text)
    for objective in ("binary:logistic", "reg:squarederror"):
        put("many-xgboost/%s.tar.gz" % objective.replace(":", "-"), xgboost_files(objective, "ubj"))
    many = {"Image": image("xgboost", "1.7-1"), "ModelDataUrl": "s3://%s/many-xgboost/" % BUCKET, "Mode": "MultiModel"}
    served("many-xgboost", PrimaryContainer=many)
    for objective in ("binary:logistic", "reg:squarederror"):
        target = objective.replace(":", "-") + ".tar.gz"
        content_type, text = ask("many-xgboost", csv(VECTORS["rows"]), TargetModel=target)
        scores = " ".join(map(str, json.loads(text)))
        proven(
            "a model of a multi-model endpoint responds with a list in JSON",
            content_type == "application/json",
            content_type,
        )
        proven("a model of many: " + objective, near(scores, xgboost_predictions(objective)), text)
    pattern = r'^Received client error \(415\) from primary with message "image/png is not an accepted ContentType: csv, libsvm'
    refused("an unsupported content type gets 415", "ModelError", pattern, lambda: ask("xgboost", b"x", "image/png"))
    pattern = r"\(400\).*Feature size of csv inference data 5 is not consistent with feature size of trained model 4\."
    refused("a wrong number of features gets 400", "ModelError", pattern, lambda: ask("xgboost", "1,2,3,4,5"))


def linear_learner():
    for name, (weights, bias) in LINEAR.items():
        put("linear/%s.tar.gz" % name, linear_files(weights, bias))
    container = {"Image": image("linear-learner"), "ModelDataUrl": "s3://%s/linear/plain.tar.gz" % BUCKET}
    served("linear", PrimaryContainer=container)
    answers(
        "linear learner responds with JSON by default",
        lambda: ask("linear", "1,2,3,4\n0,0,0,0"),
        ("application/json", '{"predictions": [{"score": 14.75}, {"score": 0.25}]}'),
    )
    body = json.dumps({"instances": [{"features": [1, 2, 3, 4]}]})
    answers(
        "a JSON request is accepted",
        lambda: json.loads(ask("linear", body, "application/json")[1])["predictions"],
        [{"score": 14.75}],
    )
    pattern = r"\(400\).*unable to evaluate payload provided: the model has 4 features, the payload has 2"
    refused("another number of features is 400", "ModelError", pattern, lambda: ask("linear", "1,2"))
    many = dict(container, ModelDataUrl="s3://%s/linear/" % BUCKET, Mode="MultiModel")
    served("many-linear", PrimaryContainer=many)
    for name in LINEAR:
        call = lambda name=name: ask("many-linear", "1,2,3,4", TargetModel=name + ".tar.gz", Accept="text/csv")[1]
        answers("a model of many: " + name, call, "%r\n" % linear_score(name, [1, 2, 3, 4]))


def sparkml():
    url = put("spark.tar.gz", spark_files())
    container = {
        "Image": image("sparkml-serving", "3.3"),
        "ModelDataUrl": url,
        "Environment": {"SAGEMAKER_SPARKML_SCHEMA": json.dumps(SCHEMA)},
    }
    served("spark", PrimaryContainer=container)
    answers(
        "SparkML responds with CSV by default", lambda: ask("spark", "11,-20,0.5,1e2"), ("text/csv", "1.0,0.0,0.0,0.0")
    )
    lines = "application/jsonlines"
    answers(
        "SparkML accepts JSON lines",
        lambda: ask("spark", "11,-20,1,0", Accept=lines),
        (lines, '{"features":[1.0,0.0,0.5,-100.0]}'),
    )
    body = json.dumps({"data": [10, -20, 0.5, 99.5]})
    answers("JSON is read", lambda: ask("spark", body, "application/json")[1], "0.0,0.0,0.0,-0.5")
    pattern = r'\(400\).*For input string: "x"'
    refused("a value that is not a number gets 400", "ModelError", pattern, lambda: ask("spark", "x,1,2,3"))


def broken():
    url = put("broken.tar.gz", {"xgboost-model": b"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00id\x85R."})
    create("broken", PrimaryContainer={"Image": image("xgboost", "1.7-1"), "ModelDataUrl": url})
    try:
        sagemaker.get_waiter("endpoint_in_service").wait(EndpointName="broken")
    except Exception:
        pass
    status = sagemaker.describe_endpoint(EndpointName="broken")["EndpointStatus"]
    proven("a pickle with code is not run, and its endpoint fails", status == "Failed", status)


def with_sdk():
    import sagemaker as sdk_module
    from sagemaker.model import Model
    from sagemaker.multidatamodel import MultiDataModel
    from sagemaker.pipeline import PipelineModel
    from sagemaker.sparkml.model import SparkMLModel

    s3.create_bucket(Bucket=BUCKET)
    session = sdk_module.Session()

    def deployed(name, models):
        pipeline = PipelineModel(models=models, role=ROLE, name=name, sagemaker_session=session)
        pipeline.deploy(initial_instance_count=1, instance_type="ml.c4.xlarge", endpoint_name=name, wait=False)
        session.wait_for_endpoint(name, poll=POLL_SECONDS)

    spark = lambda: SparkMLModel(
        model_data=put("spark.tar.gz", spark_files()),
        role=ROLE,
        sagemaker_session=session,
        env={"SAGEMAKER_SPARKML_SCHEMA": json.dumps(SCHEMA)},
    )
    trees = Model(
        image_uri=image("xgboost", "1.7-1"),
        model_data=put("xgboost.tar.gz", xgboost_files("binary:logistic", "ubj")),
        role=ROLE,
        sagemaker_session=session,
    )
    deployed("spark-xgboost", [spark(), trees])
    expected = xgboost_predictions("binary:logistic")
    for index in WHOLE:
        shifted = [value + mean for value, mean in zip(VECTORS["rows"][index], MEANS)]
        _, text = ask("spark-xgboost", csv([shifted]))
        proven("a PipelineModel of SparkML and XGBoost predicts row %d" % index, near(text, [expected[index]]), text)
    for name, (weights, bias) in LINEAR.items():
        put("linear/%s.tar.gz" % name, linear_files(weights, bias))
    plain = Model(image_uri=image("linear-learner"), role=ROLE, sagemaker_session=session)
    many = MultiDataModel(
        name="linears", model_data_prefix="s3://%s/linear/" % BUCKET, model=plain, sagemaker_session=session
    )
    deployed("spark-linears", [spark(), many])
    for name in LINEAR:
        call = lambda name=name: ask("spark-linears", "11,-18,3.5,104", TargetModel=name + ".tar.gz")[1]
        score = linear_score(name, [1, 2, 3, 4])
        answers(
            "a targeted invocation passes through SparkML: " + name, call, '{"predictions": [{"score": %r}]}' % score
        )


{"boto3": with_boto3, "sdk": with_sdk}[sys.argv[1]]()
finish()
