/** Access of model code with boto3 and its instance's key: its own files and outputs, and nothing of other endpoints. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { CreateEndpointCommand, CreateEndpointConfigCommand } from "@aws-sdk/client-sagemaker";
import { shareMadePackages } from "../shared-python.ts";
import { faultyRequest } from "./http-client.ts";
import { faultyConfig } from "./faulty-model.ts";
import { bucket, createEndpoint, endpointIs, invoke, Platform, errorOfInvocation } from "./platform.ts";
import { tarball } from "./tarball.ts";

/** Downloads its vocabulary with boto3 when it loads. Runs the calls of a request, and responds with the result of each. */
const program = `import json, os
import boto3
import numpy as np
import triton_python_backend_utils as pb_utils
from botocore.config import Config
from botocore.exceptions import ClientError

def client(service):
    return boto3.client(service, config=Config(retries={"max_attempts": 0}))

def outcome(service, operation, arguments):
    try:
        answer = getattr(client(service), operation)(**arguments)
    except ClientError as error:
        return error.response["Error"]["Code"]
    if operation.startswith("list_objects"):
        return [entry.get("Key", entry.get("Prefix")) for entry in answer.get("Contents", []) + answer.get("CommonPrefixes", [])]
    if operation == "describe_log_groups":
        return [entry["logGroupName"] for entry in answer["logGroups"]]
    return answer["Body"].read().decode() if operation == "get_object" else "done"

class TritonPythonModel:
    def initialize(self, args):
        self.vocabulary = client("s3").get_object(Bucket="${bucket}", Key="files/vocabulary.txt")["Body"].read().decode()

    def execute(self, requests):
        answers = []
        for request in requests:
            text = pb_utils.get_input_tensor_by_name(request, "DO").as_numpy().flatten()[0]
            calls = json.loads(text) if text.startswith(b"[") else []
            told = [self.vocabulary, *(outcome(*call) for call in calls)]
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("TEXT", np.array([json.dumps(told)], np.object_))]))
        return answers
`;

const othersLog = "/aws/sagemaker/Endpoints/victim";

type Call = readonly [service: string, operation: string, keyOrArguments: string | Readonly<Record<string, unknown>>];

/** Calls that read or change resources of other endpoints or of the account. */
const foreignCalls: readonly Call[] = [
  ["sagemaker", "list_endpoints", {}],
  ["sagemaker", "list_endpoint_configs", {}],
  ["sagemaker", "list_models", {}],
  ["sagemaker", "list_transform_jobs", {}],
  ["sagemaker", "list_inference_components", {}],
  ["sagemaker", "list_tags", { ResourceArn: "arn:aws:sagemaker:us-east-1:000000000000:endpoint/victim" }],
  ["sagemaker", "describe_endpoint", { EndpointName: "victim" }],
  ["sagemaker", "describe_endpoint", { EndpointName: "reader" }],
  ["sagemaker", "describe_endpoint_config", { EndpointConfigName: "captured" }],
  ["sagemaker", "describe_model", { ModelName: "caller" }],
  ["sagemaker", "delete_endpoint", { EndpointName: "victim" }],
  ["cloudwatch", "describe_alarms", {}],
  ["cloudwatch", "list_metrics", {}],
  ["cloudwatch", "list_dashboards", {}],
  [
    "cloudwatch",
    "get_metric_data",
    { MetricDataQueries: [{ Id: "a", Expression: "SEARCH(' ', 'Sum')" }], StartTime: 0, EndTime: 60 },
  ],
  [
    "cloudwatch",
    "get_metric_statistics",
    { Namespace: "AWS/SageMaker", MetricName: "Invocations", StartTime: 0, EndTime: 60, Period: 60 },
  ],
  [
    "cloudwatch",
    "put_metric_data",
    { Namespace: "AWS/SageMaker", MetricData: [{ MetricName: "Invocations", Value: 1 }] },
  ],
  ["logs", "describe_log_streams", { logGroupName: othersLog }],
  [
    "logs",
    "describe_log_streams",
    { logGroupIdentifier: `arn:aws:logs:us-east-1:000000000000:log-group:${othersLog}` },
  ],
  ["logs", "get_log_events", { logGroupName: othersLog, logStreamName: "x" }],
  ["logs", "filter_log_events", { logGroupName: othersLog }],
  ["logs", "start_query", { logGroupName: othersLog, queryString: "fields @message", startTime: 0, endTime: 60 }],
  ["logs", "describe_queries", {}],
  ["logs", "describe_metric_filters", {}],
  ["logs", "create_log_stream", { logGroupName: othersLog, logStreamName: "mine" }],
  [
    "logs",
    "put_log_events",
    { logGroupName: othersLog, logStreamName: "x", logEvents: [{ timestamp: 1, message: "m" }] },
  ],
  ["logs", "delete_log_group", { logGroupName: othersLog }],
  ["application-autoscaling", "describe_scalable_targets", { ServiceNamespace: "sagemaker" }],
  ["application-autoscaling", "describe_scaling_policies", { ServiceNamespace: "sagemaker" }],
  ["sns", "list_topics", {}],
  ["sns", "list_subscriptions", {}],
  ["iam", "list_roles", {}],
  ["iam", "get_role", { RoleName: "r" }],
  ["sts", "assume_role", { RoleArn: "arn:aws:iam::000000000000:role/r", RoleSessionName: "session" }],
];

async function outcomes(platform: Platform, name: string, calls: readonly Call[]): Promise<readonly unknown[]> {
  const requested = calls.map(([service, operation, input]) => {
    if (typeof input !== "string") return [service, operation, input];
    return [
      service,
      operation,
      { Bucket: bucket, Key: input, ...(operation === "put_object" ? { Body: "evil" } : {}) },
    ];
  });
  const { outputs } = JSON.parse(await invoke(platform, name, null, faultyRequest(JSON.stringify(requested)))) as {
    outputs: { name: string; data: string[] }[];
  };
  const text = outputs.find((output) => output.name === "TEXT")?.data[0] ?? "";
  const [vocabulary, ...found] = JSON.parse(text) as unknown[];
  assert.equal(vocabulary, "words");
  return found;
}

test("with boto3 a model reads its own files and writes its own outputs, and reaches nothing of other endpoints", async () => {
  await using platform = await Platform.open(({ data }) => shareMadePackages(data), { verified: true });
  const { s3, sagemaker } = platform;
  const put = (Key: string, Body: string | Uint8Array) => s3.send(new PutObjectCommand({ Bucket: bucket, Key, Body }));
  const archive = tarball([
    { path: "m/config.pbtxt", body: faultyConfig },
    { path: "m/1/model.py", body: program },
  ]);
  await put("one/model.tar.gz", archive);
  await put("two/model.tar.gz", archive);
  for (const key of [
    "files/vocabulary.txt",
    "captures/victim/all/1.jsonl",
    "captures/reader/all/1.jsonl",
    "answers/1.out",
  ])
    await put(key, "words");
  const packages = { GALATEA_PYTHON_PACKAGES: "boto3" };
  await createEndpoint(platform, {
    name: "reader",
    modelDataUrl: `s3://${bucket}/one/model.tar.gz`,
    environment: { ...packages, GALATEA_OBJECT_PREFIXES: `s3://${bucket}/results` },
  });
  await createEndpoint(platform, {
    name: "caller",
    modelDataUrl: `s3://${bucket}/two/model.tar.gz`,
    environment: { ...packages, GALATEA_INVOKABLE_ENDPOINTS: "victim" },
  });
  const ProductionVariants = [
    { VariantName: "all", ModelName: "caller", InstanceType: "ml.m5.large", InitialInstanceCount: 1 } as const,
  ];
  const DataCaptureConfig = {
    EnableCapture: true,
    InitialSamplingPercentage: 100,
    DestinationS3Uri: `s3://${bucket}/captures`,
    CaptureOptions: [{ CaptureMode: "Input" as const }],
  };
  await sagemaker.send(
    new CreateEndpointConfigCommand({ EndpointConfigName: "captured", ProductionVariants, DataCaptureConfig }),
  );
  await sagemaker.send(new CreateEndpointCommand({ EndpointName: "victim", EndpointConfigName: "captured" }));
  const OutputConfig = { S3OutputPath: `s3://${bucket}/answers/` };
  const AsyncInferenceConfig = { OutputConfig };
  await sagemaker.send(
    new CreateEndpointConfigCommand({ EndpointConfigName: "queued", ProductionVariants, AsyncInferenceConfig }),
  );
  for (const name of ["reader", "caller", "victim"]) await endpointIs(platform, name, "InService");

  const own: readonly Call[] = [
    ["s3", "get_object", "files/vocabulary.txt"],
    ["s3", "put_object", "results/1"],
    ["s3", "get_object", "results/1"],
    ["s3", "delete_object", "results/1"],
    ["s3", "head_object", "one/model.tar.gz"],
  ];
  assert.deepEqual(await outcomes(platform, "reader", own), ["words", "done", "evil", "done", "done"]);

  const attacks: readonly Call[] = [
    ["s3", "get_object", "two/model.tar.gz"],
    ["s3", "get_object", "captures/victim/all/1.jsonl"],
    ["s3", "get_object", "answers/1.out"],
    ["s3", "put_object", "captures/victim/all/1.jsonl"],
    ["s3", "put_object", "answers/1.out"],
    ["s3", "put_object", "files/vocabulary.txt"],
    ["s3", "put_object", "results-of-another/1"],
    ["s3", "put_object", "two/model.tar.gz"],
    ["s3", "delete_object", "files/vocabulary.txt"],
    ["s3", "delete_object", "answers/1.out"],
    ["s3", "create_multipart_upload", "files/new"],
    ["s3", "copy_object", { Bucket: bucket, Key: "results/2", CopySource: `${bucket}/answers/1.out` }],
    ["s3", "put_object_tagging", { Bucket: bucket, Key: "results/1", Tagging: { TagSet: [] } }],
    ["s3", "delete_objects", { Bucket: bucket, Delete: { Objects: [{ Key: "files/vocabulary.txt" }] } }],
  ];
  const denied = await outcomes(platform, "reader", attacks);
  assert.deepEqual(
    denied,
    attacks.map(() => "AccessDenied"),
  );
  const invoking: readonly Call[] = [
    [
      "sagemaker-runtime",
      "invoke_endpoint",
      { EndpointName: "victim", Body: faultyRequest("[]"), ContentType: "application/json" },
    ],
  ];
  assert.deepEqual(await outcomes(platform, "reader", invoking), ["AccessDeniedException"]);
  assert.deepEqual(await outcomes(platform, "caller", invoking), ["done"]);
  const foreign = await outcomes(platform, "reader", foreignCalls);
  assert.deepEqual(
    foreign.map((code) => String(code).replace("AccessDeniedException", "AccessDenied")),
    foreignCalls.map(() => "AccessDenied"),
  );
  const groups: readonly Call[] = [
    ["logs", "describe_log_groups", {}],
    ["logs", "describe_log_groups", { logGroupNamePrefix: "/aws/sagemaker/Endpoints/v" }],
    ["logs", "describe_log_groups", { logGroupNamePattern: "victim" }],
    ["logs", "describe_log_groups", { logGroupIdentifiers: [othersLog] }],
  ];
  assert.deepEqual(await outcomes(platform, "reader", groups), [["/aws/sagemaker/Endpoints/reader"], [], [], []]);
  const folders = await outcomes(platform, "reader", [["s3", "list_objects_v2", { Bucket: bucket, Delimiter: "/" }]]);
  assert.deepEqual(folders, [["files/", "one/"]]);
  const listed = (await outcomes(platform, "reader", [["s3", "list_objects_v2", { Bucket: bucket }]])) as string[][];
  assert.deepEqual(listed, [["files/vocabulary.txt", "one/model.tar.gz"]]);
});

test("CreateModel rejects grants with invalid values", async () => {
  await using platform = await Platform.open();
  for (const [name, value] of [
    ["GALATEA_OBJECT_PREFIXES", "results/"],
    ["GALATEA_INVOKABLE_ENDPOINTS", "a/b"],
  ] as const) {
    const created = createEndpoint(platform, {
      name: "x",
      modelDataUrl: `s3://${bucket}/m.tar.gz`,
      environment: { [name]: value },
    });
    assert.match((await errorOfInvocation(created)).message, new RegExp(`^Environment variable ${name} must contain `));
  }
});
