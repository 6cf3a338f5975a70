"""Tests asynchronous inference and SNS with boto3 and the sagemaker SDK.

python queues.py boto3|topics|accept|after-restart|sdk
"""

import base64
import http.server
import json
import os
import queue
import struct
import sys
import threading
import urllib.request

import boto3
from archives import TWICE_BODY, archive, twice
from botocore.config import Config
from statements import (
    IMAGE,
    POLL_SECONDS,
    ROLE,
    answers,
    eventually,
    failed,
    finish,
    proven,
    refused,
    runtime,
    s3,
    sagemaker,
)

BUCKET = "conformance-queues"
ENDPOINT = "conformance-queues"

sns = boto3.client("sns")
logs = boto3.client("logs")
cloudwatch = boto3.client("cloudwatch")
scaling = boto3.client("application-autoscaling")


class Receiver(http.server.BaseHTTPRequestHandler):
    """Receives the messages of SNS in order."""

    received = queue.Queue()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()
        Receiver.received.put((self.headers["x-amz-sns-message-type"], json.loads(body)))

    def log_message(self, *arguments):
        pass


def hook():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "http://127.0.0.1:%d/hook" % server.server_address[1]


def received():
    return Receiver.received.get(timeout=60)


def model():
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="twice.tar.gz", Body=archive(twice))
    s3.put_object(Bucket=BUCKET, Key="in/good.json", Body=TWICE_BODY)
    s3.put_object(Bucket=BUCKET, Key="in/bad.json", Body="{}")
    container = {
        "Image": IMAGE,
        "ModelDataUrl": "s3://%s/twice.tar.gz" % BUCKET,
        "Environment": {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "twice"},
    }
    sagemaker.create_model(ModelName=ENDPOINT, ExecutionRoleArn=ROLE, PrimaryContainer=container)


def deploy(topic):
    model()
    config = {
        "ClientConfig": {"MaxConcurrentInvocationsPerInstance": 2},
        "OutputConfig": {
            "S3OutputPath": "s3://%s/out" % BUCKET,
            "S3FailurePath": "s3://%s/bad" % BUCKET,
            "NotificationConfig": {
                "SuccessTopic": topic,
                "ErrorTopic": topic,
                "IncludeInferenceResponseIn": ["SUCCESS_NOTIFICATION_TOPIC"],
            },
        },
    }
    variant = {"VariantName": "all", "ModelName": ENDPOINT, "InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
    sagemaker.create_endpoint_config(
        EndpointConfigName=ENDPOINT, ProductionVariants=[variant], AsyncInferenceConfig=config
    )
    found = sagemaker.describe_endpoint_config(EndpointConfigName=ENDPOINT)
    proven("DescribeEndpointConfig returns AsyncInferenceConfig", found["AsyncInferenceConfig"] == config)
    sagemaker.create_endpoint(EndpointName=ENDPOINT, EndpointConfigName=ENDPOINT)
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=ENDPOINT)
    found = sagemaker.describe_endpoint(EndpointName=ENDPOINT)
    proven("DescribeEndpoint returns AsyncInferenceConfig", found.get("AsyncInferenceConfig") == config)


def ask(**more):
    return runtime.invoke_endpoint_async(EndpointName=ENDPOINT, ContentType="application/json", **more)


def unchecked(**more):
    """Sends requests that boto3 would reject, so that the platform must reject them."""
    client = boto3.client("sagemaker-runtime", config=Config(parameter_validation=False))
    client.invoke_endpoint_async(EndpointName=ENDPOINT, Body=b"x", **more)


def body_of(url):
    bucket, key = url[len("s3://") :].split("/", 1)
    s3.get_waiter("object_exists").wait(Bucket=bucket, Key=key, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    return s3.get_object(Bucket=bucket, Key=key)


def outputs(url):
    return json.loads(body_of(url)["Body"].read())["outputs"][0]["data"]


def invocations():
    topic = sns.create_topic(Name="results")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=hook())
    kind, message = received()
    urllib.request.urlopen(message["SubscribeURL"]).read()
    deploy(topic)
    answer = ask(InputLocation="s3://%s/in/good.json" % BUCKET, InferenceId="mine")
    status = answer["ResponseMetadata"]["HTTPStatusCode"]
    proven("InvokeEndpointAsync gets 202 with its id", (status, answer["InferenceId"]) == (202, "mine"))
    proven("the response is stored in OutputLocation", outputs(answer["OutputLocation"]) == [2.0, 4.0])
    proven(
        "the stored response has its content type",
        body_of(answer["OutputLocation"])["ContentType"].startswith("application/json"),
    )
    kind, message = received()
    told = json.loads(message["Message"])
    found = (kind, told["invocationStatus"], told["inferenceId"], told["responseParameters"]["outputLocation"])
    proven(
        "the success topic gets a message",
        found == ("Notification", "Completed", "mine", answer["OutputLocation"]),
        str(told),
    )
    said = json.loads(base64.b64decode(told["responseBody"]["content"]))["outputs"][0]["data"]
    found = (told["responseBody"]["encoding"], said)
    proven("the message has the response, as requested", found == ("BASE64", [2.0, 4.0]), str(told["responseBody"]))
    answer = ask(Body=TWICE_BODY.encode(), Filename="own.json", S3OutputPathExtension="deep")
    proven(
        "Filename and S3OutputPathExtension set the output's name",
        answer["OutputLocation"] == "s3://%s/out/deep/own.json" % BUCKET,
    )
    proven("an input in the request's body gets a response", outputs(answer["OutputLocation"]) == [2.0, 4.0])
    received()
    answer = ask(InputLocation="s3://%s/in/bad.json" % BUCKET)
    failure = body_of(answer["FailureLocation"])["Body"].read()
    proven("a failure is stored in FailureLocation", list(json.loads(failure)) == ["error"], failure[:80].decode())
    kind, message = received()
    told = json.loads(message["Message"])
    reason = "ClientError: Received server error (500) from model."
    proven("the error topic gets a message", told["failureReason"].startswith(reason), told["failureReason"])


def refusals():
    both = {"InputLocation": "s3://%s/in/good.json" % BUCKET, "Body": b"x"}
    refused(
        "an input in body and location is rejected",
        "ValidationError",
        "exactly one of Body and InputLocation",
        lambda: ask(**both),
    )
    refused(
        "a request without input is rejected", "ValidationError", "exactly one of Body and InputLocation", lambda: ask()
    )
    refused(
        "RequestTTLSeconds below 60 is rejected",
        "ValidationError",
        "at 'requestTTLSeconds' failed to satisfy constraint: Member must have value greater than or equal to 60",
        lambda: unchecked(RequestTTLSeconds=59),
    )
    refused(
        "InvocationTimeoutSeconds above 3600 is rejected",
        "ValidationError",
        "Member must have value less than or equal to 3600",
        lambda: unchecked(InvocationTimeoutSeconds=3601),
    )
    refused("a long body is rejected", "413", "128000 bytes", lambda: ask(Body=b"x" * 128_001))
    refused(
        "InvokeEndpoint of an asynchronous endpoint is rejected",
        "ValidationError",
        "is an asynchronous endpoint",
        lambda: runtime.invoke_endpoint(EndpointName=ENDPOINT, Body=b"x"),
    )
    refused(
        "a missing endpoint is an error",
        "ValidationError",
        "Endpoint nobody of account [0-9]{12} not found",
        lambda: runtime.invoke_endpoint_async(EndpointName="nobody", Body=b"x"),
    )


def to_zero():
    resource = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": "endpoint/%s/variant/all" % ENDPOINT,
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    scaling.register_scalable_target(MinCapacity=0, MaxCapacity=2, **resource)
    (target,) = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
    proven("a scalable target with a minimum of 0", target["MinCapacity"] == 0)
    scaling.deregister_scalable_target(**resource)
    resize(0)
    (variant,) = sagemaker.describe_endpoint(EndpointName=ENDPOINT)["ProductionVariants"]
    proven("an endpoint without an instance is in service", variant["CurrentInstanceCount"] == 0)


def resize(count):
    size = {"VariantName": "all", "DesiredInstanceCount": count}
    sagemaker.update_endpoint_weights_and_capacities(EndpointName=ENDPOINT, DesiredWeightsAndCapacities=[size])
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=ENDPOINT)


def accept():
    """Sends requests while there is no instance; then the platform is killed."""
    urls = [ask(Body=TWICE_BODY.encode())["OutputLocation"] for _ in range(5)]
    s3.put_object(Bucket=BUCKET, Key="accepted.json", Body=json.dumps(urls))
    answers(
        "requests wait in the queue",
        lambda: s3.list_objects_v2(Bucket=BUCKET, Prefix=urls[0].split("/", 3)[3])["KeyCount"],
        0,
    )


def after_restart():
    resize(1)
    urls = json.loads(s3.get_object(Bucket=BUCKET, Key="accepted.json")["Body"].read())
    proven("accepted requests get responses after kill -9", [outputs(url) for url in urls] == [[2.0, 4.0]] * 5)
    sagemaker.delete_endpoint(EndpointName=ENDPOINT)
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=ENDPOINT)


def topics():
    arn = sns.create_topic(Name="told", Attributes={"DisplayName": "Told"})["TopicArn"]
    proven("a repeated CreateTopic returns the same topic", sns.create_topic(Name="told")["TopicArn"] == arn)
    listed = [topic["TopicArn"] for topic in sns.list_topics()["Topics"]]
    proven("ListTopics", arn in listed, str(listed))
    endpoint = hook()
    answer = sns.subscribe(TopicArn=arn, Protocol="http", Endpoint=endpoint)
    proven("a subscription waits for its endpoint", answer["SubscriptionArn"] == "pending confirmation")
    kind, message = received()
    proven("the endpoint is sent a token", (kind, message["Type"]) == ("SubscriptionConfirmation",) * 2)
    own = sns.confirm_subscription(TopicArn=arn, Token=message["Token"])["SubscriptionArn"]
    (found,) = sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]
    proven("ListSubscriptionsByTopic", (found["SubscriptionArn"], found["Endpoint"]) == (own, endpoint))
    proven("ListSubscriptions", own in [each["SubscriptionArn"] for each in sns.list_subscriptions()["Subscriptions"]])
    sns.set_topic_attributes(TopicArn=arn, AttributeName="SignatureVersion", AttributeValue="2")
    attributes = sns.get_topic_attributes(TopicArn=arn)["Attributes"]
    found = (attributes["DisplayName"], attributes["SignatureVersion"], attributes["SubscriptionsConfirmed"])
    proven("GetTopicAttributes", found == ("Told", "2", "1"), str(attributes))
    attribute = {"kind": {"DataType": "String", "StringValue": "x"}}
    said = sns.publish(TopicArn=arn, Subject="Hear", Message="it", MessageAttributes=attribute)
    kind, message = received()
    found = (kind, message["Message"], message["Subject"], message["MessageId"], message["SignatureVersion"])
    proven("Publish", found == ("Notification", "it", "Hear", said["MessageId"], "2"), str(message))
    proven(
        "the subscription's attributes are returned",
        message["MessageAttributes"] == {"kind": {"Type": "String", "Value": "x"}},
    )
    sns.publish(TopicArn=arn, Message=json.dumps({"default": "d", "http": "h"}), MessageStructure="json")
    proven("MessageStructure", received()[1]["Message"] == "h")
    sns.set_subscription_attributes(SubscriptionArn=own, AttributeName="RawMessageDelivery", AttributeValue="true")
    attributes = sns.get_subscription_attributes(SubscriptionArn=own)["Attributes"]
    proven("SetSubscriptionAttributes", attributes["RawMessageDelivery"] == "true", str(attributes))
    sns.publish(TopicArn=arn, Message='{"raw": 1}')
    proven("a raw subscription gets the message text", received()[1] == {"raw": 1})
    sns.set_subscription_attributes(SubscriptionArn=own, AttributeName="RawMessageDelivery", AttributeValue="false")
    filters(arn, own)
    policies(arn, own)
    alarm(arn)
    topic_refusals(arn, own)
    sns.unsubscribe(SubscriptionArn=own)
    answers("Unsubscribe", lambda: sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"], [])
    sns.delete_topic(TopicArn=arn)
    pattern = "^Topic does not exist$"
    refused("DeleteTopic", "NotFound", pattern, lambda: sns.publish(TopicArn=arn, Message="x"))


def filters(arn, own):
    """Publishes two messages, of which a filter policy passes the second."""

    def changed(**attributes):
        for name, value in attributes.items():
            sns.set_subscription_attributes(SubscriptionArn=own, AttributeName=name, AttributeValue=value)

    changed(FilterPolicy=json.dumps({"kind": ["x", {"prefix": "ord"}], "price": [{"numeric": [">", 10]}]}))
    found = sns.get_subscription_attributes(SubscriptionArn=own)["Attributes"]
    proven("FilterPolicyScope is MessageAttributes by default", found["FilterPolicyScope"] == "MessageAttributes")
    for price in ("10", "10.5"):
        attributes = {
            "kind": {"DataType": "String.Array", "StringValue": '["a", "order"]'},
            "price": {"DataType": "Number", "StringValue": price},
        }
        sns.publish(TopicArn=arn, Message=price, MessageAttributes=attributes)
    proven("a FilterPolicy filters by attributes", received()[1]["Message"] == "10.5")
    changed(FilterPolicyScope="MessageBody", FilterPolicy=json.dumps({"order": {"id": [{"anything-but": 1}]}}))
    for body in ("no JSON", '{"order": {"id": 1}}', '{"order": {"id": 2}}'):
        sns.publish(TopicArn=arn, Message=body)
    proven("a FilterPolicy filters by the body", json.loads(received()[1]["Message"]) == {"order": {"id": 2}})
    changed(FilterPolicy="", FilterPolicyScope="MessageAttributes")
    found = sns.get_subscription_attributes(SubscriptionArn=own)["Attributes"]
    proven("without a filter all messages are delivered", "FilterPolicy" not in found, str(found))


def policies(arn, own):
    policy = {"http": {"defaultHealthyRetryPolicy": {"numRetries": 5, "maxDelayTarget": 30}}}
    sns.set_topic_attributes(TopicArn=arn, AttributeName="DeliveryPolicy", AttributeValue=json.dumps(policy))

    def effective():
        told = sns.get_subscription_attributes(SubscriptionArn=own)["Attributes"]["EffectiveDeliveryPolicy"]
        return json.loads(told)["healthyRetryPolicy"]["numRetries"]

    proven("a topic's DeliveryPolicy", effective() == 5)
    own_policy = json.dumps({"healthyRetryPolicy": {"numRetries": 1}})
    sns.set_subscription_attributes(SubscriptionArn=own, AttributeName="DeliveryPolicy", AttributeValue=own_policy)
    proven("a subscription's DeliveryPolicy", effective() == 1)
    policy["http"]["disableSubscriptionOverrides"] = True
    sns.set_topic_attributes(TopicArn=arn, AttributeName="DeliveryPolicy", AttributeValue=json.dumps(policy))
    proven("a topic may override the delivery policy", effective() == 5)
    role = "arn:aws:iam::000000000000:role/SNSFeedback"
    sns.set_topic_attributes(TopicArn=arn, AttributeName="HTTPSuccessFeedbackRoleArn", AttributeValue=role)
    sns.set_topic_attributes(TopicArn=arn, AttributeName="HTTPSuccessFeedbackSampleRate", AttributeValue="100")
    found = sns.get_topic_attributes(TopicArn=arn)["Attributes"]
    proven("HTTPSuccessFeedbackSampleRate", found["HTTPSuccessFeedbackSampleRate"] == "100")
    sent = sns.publish(TopicArn=arn, Message="logged")["MessageId"]
    received()
    _, _, _, region, account, name = arn.split(":")
    group = {"logGroupName": "sns/%s/%s/%s" % (region, account, name)}

    def status():
        try:
            events = logs.filter_log_events(**group)["events"]
        except logs.exceptions.ResourceNotFoundException:
            return None
        return [json.loads(each["message"])["status"] for each in events if sent in each["message"]]

    # The line is written after the subscriber has responded, which the test sees earlier.
    eventually(status)
    answers("a delivery is in the log of its topic", status, ["SUCCESS"])


def alarm(topic):
    cloudwatch.put_metric_alarm(
        AlarmName="told",
        Namespace="mine",
        MetricName="Waiting",
        Statistic="Maximum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=5,
        ComparisonOperator="GreaterThanThreshold",
        AlarmActions=[topic],
    )
    cloudwatch.set_alarm_state(AlarmName="told", StateValue="ALARM", StateReason="set by a client")
    _, message = received()
    told = json.loads(message["Message"])
    found = (message["Subject"], told["NewStateValue"], told["NewStateReason"], told["Trigger"]["Statistic"])
    expected = ('ALARM: "told" in US East (N. Virginia)', "ALARM", "set by a client", "MAXIMUM")
    proven("an alarm publishes to its topic", found == expected, str(told))
    cloudwatch.delete_alarms(AlarmNames=["told"])


def topic_refusals(arn, own):
    def subscribe(protocol, endpoint):
        return lambda: sns.subscribe(TopicArn=arn, Protocol=protocol, Endpoint=endpoint)

    pattern = "sqs is not supported by this platform yet; http and https are supported$"
    refused("another protocol is rejected", "InvalidParameter", pattern, subscribe("sqs", "arn:aws:sqs:us-east-1:1:q"))
    pattern = "^Invalid parameter: Endpoint must match the specified protocol$"
    refused("an endpoint of another protocol is rejected", "InvalidParameter", pattern, subscribe("https", "http://x/"))

    def change(name, value):
        return lambda: sns.set_subscription_attributes(SubscriptionArn=own, AttributeName=name, AttributeValue=value)

    pattern = "^Invalid parameter: FilterPolicy: Unrecognized match type like$"
    refused(
        "an unknown rule is rejected", "InvalidParameter", pattern, change("FilterPolicy", '{"kind":[{"like":"x"}]}')
    )
    pattern = "^Invalid parameter: Filter policy scope MessageAttributes does not support nested filter policy$"
    refused(
        "a nested filter of attributes is rejected",
        "InvalidParameter",
        pattern,
        change("FilterPolicy", '{"a":{"b":["x"]}}'),
    )
    pattern = "FilterPolicyScope: Invalid value \\[Message\\]. Please use either MessageBody or MessageAttributes$"
    refused("an unknown scope is rejected", "InvalidParameter", pattern, change("FilterPolicyScope", "Message"))
    pattern = "DeliveryPolicy: numRetries must be a whole number between 0 and 100$"
    policy = json.dumps({"healthyRetryPolicy": {"numRetries": 1000}})
    refused("too many retries are rejected", "InvalidParameter", pattern, change("DeliveryPolicy", policy))
    pattern = "RedrivePolicy: Amazon SQS is not supported by this platform yet"
    policy = json.dumps({"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead"})
    refused("a dead-letter queue is rejected", "InvalidParameter", pattern, change("RedrivePolicy", policy))
    refused(
        "an unknown attribute is rejected",
        "InvalidParameter",
        "^Invalid parameter: AttributeName$",
        change("Pace", "1"),
    )
    pattern = "FIFO topics are not supported by this platform yet"
    fifo = {"FifoTopic": "true"}
    refused(
        "a FIFO topic is rejected",
        "InvalidParameter",
        pattern,
        lambda: sns.create_topic(Name="t.fifo", Attributes=fifo),
    )
    pattern = "^Invalid parameter: Topic Name$"
    refused("a topic's name", "InvalidParameter", pattern, lambda: sns.create_topic(Name="no spaces"))
    pattern = "^Invalid parameter: Message too long$"
    refused(
        "a long message is rejected",
        "InvalidParameter",
        pattern,
        lambda: sns.publish(TopicArn=arn, Message="x" * 262_145),
    )
    pattern = "^Subscription does not exist$"
    absent = own[:-36] + "00000000-0000-0000-0000-000000000000"
    get = {"SubscriptionArn": absent}
    refused("a missing subscription is an error", "NotFound", pattern, lambda: sns.get_subscription_attributes(**get))


def sdk():
    import sagemaker as sdk_module
    from sagemaker.async_inference import AsyncInferenceConfig, WaiterConfig
    from sagemaker.deserializers import JSONDeserializer
    from sagemaker.model import Model
    from sagemaker.predictor import Predictor
    from sagemaker.serializers import IdentitySerializer, JSONSerializer

    session = sdk_module.Session()
    bucket = session.default_bucket()
    s3.put_object(Bucket=bucket, Key="queued/model.tar.gz", Body=archive(twice))
    model = Model(
        image_uri=IMAGE,
        model_data="s3://%s/queued/model.tar.gz" % bucket,
        role=ROLE,
        env={"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "twice"},
        predictor_cls=Predictor,
        sagemaker_session=session,
    )
    predictor = model.deploy(
        initial_instance_count=1,
        instance_type="ml.m5.xlarge",
        endpoint_name="conformance-queues-sdk",
        async_inference_config=AsyncInferenceConfig(),
        wait=False,
    )
    session.wait_for_endpoint("conformance-queues-sdk", poll=POLL_SECONDS)
    predictor.predictor.serializer = predictor.serializer = JSONSerializer()
    predictor.predictor.deserializer = predictor.deserializer = JSONDeserializer()
    waiter = WaiterConfig(max_attempts=60, delay=1)
    answer = predictor.predict(json.loads(TWICE_BODY), waiter_config=waiter)
    proven("AsyncPredictor.predict", answer["outputs"][0]["data"] == [2.0, 4.0], str(answer))
    response = predictor.predict_async(json.loads(TWICE_BODY))
    found = response.get_result(waiter)["outputs"][0]["data"]
    proven("AsyncPredictor.predict_async and get_result work with a WaiterConfig", found == [2.0, 4.0])
    header = json.dumps(
        {
            "id": "typed",
            "inputs": [{"name": "X", "shape": [2], "datatype": "FP32", "parameters": {"binary_data_size": 8}}],
        }
    ).encode()
    predictor.serializer = IdentitySerializer(
        "application/vnd.sagemaker-triton.binary+json;json-header-size=%d" % len(header)
    )
    typed = predictor.predict(header + struct.pack("<2f", 1, 2), waiter_config=waiter)
    proven(
        "the content type of the object that AsyncPredictor stores is the input's", typed["id"] == "typed", str(typed)
    )
    predictor.delete_model()
    predictor.delete_endpoint()
    # The SDK's thread still waits for a failure object that never exists.
    sys.stdout.flush()
    os._exit(1 if failed else 0)


for step in sys.argv[1:]:
    for part in {
        "boto3": [invocations, refusals, to_zero],
        "accept": [accept],
        "after-restart": [after_restart],
        "topics": [topics],
        "sdk": [sdk],
    }[step]:
        part()
finish()
