import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { EnvironmentName } from "../environments/index.ts";
import { callers } from "./conversation/callers.ts";
import type { CallError, Members } from "./conversation/client.ts";
import { ScriptedPlatform } from "./scripted-platform.ts";

const program = fileURLToPath(new URL("branches.py", import.meta.url));

async function run(segment: string, environment: EnvironmentName): Promise<void> {
  await using platform = await ScriptedPlatform.open();
  const output = await platform.run(program, [segment], { proxy: true, environment });
  assert(!output.includes("FAILED"), output);
}

test("every branch of the sagemaker SDK v2 on an error's code or text behaves as with SageMaker", () =>
  run("v2", "sagemaker-v2"));

test("every branch of the sagemaker SDK v3 on an error's code or text behaves as with SageMaker", () =>
  run("v3", "sagemaker-v3"));

interface Provoked {
  readonly service: string;
  readonly operation: string;
  readonly input: Members;
  /** The class that the published model has for it. */
  readonly kind: string;
}

const group = { logGroupName: "/kinds" };
const stream = { ...group, logStreamName: "absent" };
const object = { Bucket: "kinds", Key: "absent" };
const nobody = { ServiceNamespace: "sagemaker", ResourceId: "endpoint/absent/variant/v" };
const dimension = { ScalableDimension: "sagemaker:variant:DesiredInstanceCount" };
const topic = { TopicArn: "arn:aws:sns:us-east-1:000000000000:absent" };
const trust = { AssumeRolePolicyDocument: '{"Version":"2012-10-17","Statement":[]}' };
const policy = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"*"}]}';
const now = new Date();
const requested = {
  StartTime: now,
  EndTime: new Date(now.getTime() + 60_000),
  MetricDataQueries: [{ Id: "one", Expression: "SEARCH('{a} b', 'Sum', 60)" }],
};

/** Calls that provoke errors which programs catch with `except client.exceptions.X` or `instanceof X`. */
const provoked: readonly Provoked[] = [
  { service: "s3", operation: "GetObject", input: object, kind: "NoSuchKey" },
  { service: "s3", operation: "ListObjectsV2", input: { Bucket: "kinds-absent" }, kind: "NoSuchBucket" },
  { service: "s3", operation: "AbortMultipartUpload", input: { ...object, UploadId: "none" }, kind: "NoSuchUpload" },
  { service: "logs", operation: "GetLogEvents", input: stream, kind: "ResourceNotFoundException" },
  { service: "logs", operation: "CreateLogGroup", input: group, kind: "ResourceAlreadyExistsException" },
  {
    service: "logs",
    operation: "PutRetentionPolicy",
    input: { ...group, retentionInDays: 2 },
    kind: "InvalidParameterException",
  },
  {
    service: "cloudwatch",
    operation: "GetDashboard",
    input: { DashboardName: "absent" },
    // Two errors have this code, and clients choose this class.
    kind: "ResourceNotFound",
  },
  {
    service: "cloudwatch",
    operation: "PutDashboard",
    input: { DashboardName: "kinds", DashboardBody: "no JSON" },
    kind: "DashboardInvalidInputError",
  },
  {
    service: "cloudwatch",
    operation: "SetAlarmState",
    input: { AlarmName: "absent", StateValue: "OK", StateReason: "none" },
    kind: "ResourceNotFound",
  },
  { service: "cloudwatch", operation: "DescribeAlarms", input: { NextToken: "none" }, kind: "InvalidNextToken" },
  {
    service: "cloudwatch",
    operation: "GetMetricData",
    input: { ...requested, NextToken: "x" },
    kind: "InvalidNextToken",
  },
  {
    service: "application-autoscaling",
    operation: "DeregisterScalableTarget",
    input: { ...nobody, ...dimension },
    kind: "ObjectNotFoundException",
  },
  {
    service: "application-autoscaling",
    operation: "DescribeScalingActivities",
    input: { ServiceNamespace: "sagemaker", NextToken: "none" },
    kind: "InvalidNextTokenException",
  },
  {
    service: "application-autoscaling",
    operation: "RegisterScalableTarget",
    input: { ...nobody, ...dimension, MinCapacity: 2, MaxCapacity: 1 },
    kind: "ValidationException",
  },
  { service: "sns", operation: "Publish", input: { ...topic, Message: "x" }, kind: "NotFoundException" },
  { service: "sns", operation: "CreateTopic", input: { Name: "no spaces" }, kind: "InvalidParameterException" },
  { service: "iam", operation: "GetRole", input: { RoleName: "absent" }, kind: "NoSuchEntityException" },
  {
    service: "iam",
    operation: "CreateRole",
    input: { RoleName: "kinds", ...trust },
    kind: "EntityAlreadyExistsException",
  },
  {
    service: "iam",
    operation: "CreatePolicy",
    input: { PolicyName: "kinds", PolicyDocument: "no JSON" },
    kind: "MalformedPolicyDocumentException",
  },
  { service: "iam", operation: "DeleteRole", input: { RoleName: "kinds" }, kind: "DeleteConflictException" },
  {
    service: "sagemaker-runtime",
    operation: "InvokeEndpoint",
    input: { EndpointName: "absent", Body: Buffer.from("x") },
    kind: "ValidationError",
  },
];

for (const { name, open } of callers.filter(({ name }) => name !== "cli")) {
  test(`${name} raises its own class for every modelled error`, async () => {
    await using platform = await ScriptedPlatform.open();
    await using caller = await open(await platform.variables());
    await caller.call("s3", "CreateBucket", { Bucket: "kinds" });
    await caller.call("logs", "CreateLogGroup", group);
    await caller.call("iam", "CreateRole", { RoleName: "kinds", ...trust });
    await caller.call("iam", "PutRolePolicy", { RoleName: "kinds", PolicyName: "own", PolicyDocument: policy });
    const found = [];
    for (const { service, operation, input } of provoked) {
      const kind = await caller.call(service, operation, input).then(
        () => "none: the call succeeded",
        (error: CallError) => error.kind,
      );
      found.push(`${service} ${operation} ${kind}`);
    }
    assert.deepEqual(
      found,
      provoked.map(({ service, operation, kind }) => `${service} ${operation} ${kind}`),
    );
  });
}

test("every error that botocore's waiters match is recognized by them", () => run("waiters", "clients"));
