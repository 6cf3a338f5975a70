import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";

import { systemClock } from "@galatea/base";
import type { InstanceIdentity } from "@galatea/hosting";
import { awsServices, type AwsServicesDependencies } from "../services/index.ts";
import { instancePermissions } from "./instance-permissions.ts";

/** Locations of outputs by their folder, with the endpoints that own them. */
const outputs: Readonly<Record<string, readonly string[]>> = {
  "captures/": [],
  "captures/e/": ["e"],
  "captures/other/": ["other"],
  "answers/": ["e", "other"],
  "theirs/answers/": ["other"],
  "jobs/j/": ["transform-job/j"],
};

/** The key of an instance of endpoint e. */
function keyOf(more: Partial<InstanceIdentity> = {}, invokableEndpoints: readonly string[] = []) {
  const id = "GALI1";
  const identity: InstanceIdentity = {
    instanceId: "i-1",
    containerName: "primary",
    endpointName: "e",
    accountId: "000000000000",
    region: "us-east-1",
    logGroup: "/aws/sagemaker/Endpoints/e",
    modelData: null,
    objectPrefixes: [],
    invokableEndpoints: [],
    ...more,
  };
  const key = { accessKeyId: id, secretAccessKey: "secret", identity };
  const instances = instancePermissions(
    { find: (accessKeyId) => (accessKeyId === id ? key : undefined) },
    {
      invokableEndpoints,
      isModelData: ({ bucket, key }) => bucket === "bkt" && /^(?:mine\/|theirs\/a|one\.tar\.gz)/.test(key),
      outputLocation({ bucket, key }) {
        const prefix = Object.keys(outputs)
          .filter((each) => bucket === "bkt" && key.startsWith(each))
          .toSorted((a, b) => b.length - a.length)[0];
        return prefix === undefined ? null : { prefix, owners: new Set(outputs[prefix]) };
      },
    },
  );
  const mayOn = (action: string, resource: string) => instances.isAllowed(id, action, resource);
  const may = (action: string, name?: string) => mayOn(action, name === undefined ? "*" : `arn:aws:s3:::bkt/${name}`);
  const mayInvoke = (name: string) =>
    mayOn("sagemaker:InvokeEndpoint", `arn:aws:sagemaker:us-east-1:000000000000:endpoint/${name}`);
  return { instances, id, may, mayOn, mayInvoke };
}

const reads = ["s3:GetObject", "s3:HeadObject", "s3:GetObjectTagging"];
const writes = [
  "s3:PutObject",
  "s3:DeleteObject",
  "s3:CreateMultipartUpload",
  "s3:UploadPart",
  "s3:AbortMultipartUpload",
];

test("an instance's key reads objects that are neither another model's data nor another's output", () => {
  const { may, instances, id } = keyOf({ modelData: { bucket: "bkt", key: "one.tar.gz", kind: "object" } });
  for (const action of reads) {
    for (const name of ["vocabulary.json", "captures/e/all/1.jsonl", "answers/1.out", "one.tar.gz"])
      assert.ok(may(action, name), `${action} ${name}`);
    for (const name of [
      "theirs/a.tar.gz",
      "one.tar.gz2",
      "captures/other/all/1.jsonl",
      "captures/gone/all/1.jsonl",
      "theirs/answers/1.out",
      "jobs/j/x.out",
    ])
      assert.ok(!may(action, name), `${action} ${name}`);
  }
  const lists = (key: string) => instances.isObjectListed(id)?.({ bucket: "bkt", key });
  assert.deepEqual(["vocabulary.json", "captures/other/x", "theirs/a.tar.gz", "captures/e/x"].map(lists), [
    true,
    false,
    false,
    true,
  ]);
  assert.equal(instances.isObjectListed("OWNER"), null);
  assert.equal(instances.isObjectListed(null), null);
});

test("an instance's key writes and deletes only below its endpoint's outputs and the prefixes that its model names", () => {
  const { may } = keyOf({ objectPrefixes: [{ bucket: "bkt", key: "results/" }] });
  for (const action of writes) {
    for (const name of ["results/1", "captures/e/1", "answers/1.out"])
      assert.ok(may(action, name), `${action} ${name}`);
    for (const name of [
      "results",
      "results-of-others/1",
      "vocabulary.json",
      "captures/1",
      "captures/other/1",
      "theirs/answers/1.out",
      "jobs/j/x.out",
    ])
      assert.ok(!may(action, name), `${action} ${name}`);
  }
  const { mayOn } = keyOf({ objectPrefixes: [{ bucket: "bkt", key: "results/" }] });
  assert.ok(!mayOn("s3:PutObject", "arn:aws:s3:::other/results/1"));
});

test("the longer of a named prefix and another's output prefix decides, and model data is never written", () => {
  const bucket = "bkt";
  const complete = keyOf({ objectPrefixes: [{ bucket, key: "" }] });
  for (const action of [...reads, ...writes]) {
    assert.ok(complete.may(action, "anything/1"), action);
    assert.ok(!complete.may(action, "captures/other/1"), action);
    assert.ok(!complete.may(action, "theirs/a.tar.gz"), action);
  }
  const exact = keyOf({ objectPrefixes: [{ bucket, key: "captures/other/" }] });
  assert.ok(exact.may("s3:GetObject", "captures/other/1"));
});

test("tenants of one container cannot read each other's archives", () => {
  const { may } = keyOf({
    modelData: { bucket: "bkt", key: "mine/", kind: "tenants" },
    objectPrefixes: [{ bucket: "bkt", key: "mine/shared/" }],
  });
  for (const name of ["mine/a.tar.gz", "mine/b/model.tar.gz", "mine/shared/x"])
    for (const action of [...reads, ...writes]) assert.ok(!may(action, name), `${action} ${name}`);
});

test("a transform job's key writes to its output, and an endpoint's does not", () => {
  assert.ok(keyOf({ endpointName: "transform-job/j" }).may("s3:PutObject", "jobs/j/x.out"));
  assert.ok(!keyOf({ endpointName: "j" }).may("s3:PutObject", "jobs/j/x.out"));
});

test("an instance's key invokes its own endpoint, those that its model names, and those of the operator", () => {
  const one = keyOf();
  assert.deepEqual(["e", "other"].map(one.mayInvoke), [true, false]);
  const named = keyOf({ invokableEndpoints: ["Other"] });
  assert.deepEqual(["e", "other", "third"].map(named.mayInvoke), [true, true, false]);
  assert.deepEqual(["other", "third"].map(keyOf({}, ["third"]).mayInvoke), [false, true]);
  assert.ok(keyOf({}, ["*"]).mayInvoke("other"));
  assert.ok(!keyOf({ endpointName: "transform-job/j" }).mayInvoke("j"));
});

test("an instance's key reads its model's data, may use S3, and no other service", () => {
  const { may, mayOn } = keyOf({
    modelData: { bucket: "bkt", key: "mine/", kind: "prefix" },
    objectPrefixes: [{ bucket: "bkt", key: "out/" }],
  });
  for (const name of ["mine/a.tar.gz", "out/x"]) assert.ok(may("s3:GetObject", name), name);
  for (const name of ["theirs/a.tar.gz", "one.tar.gz"]) assert.ok(!may("s3:GetObject", name), name);
  assert.ok(may("s3:PutObject", "out/x"));
  for (const name of ["mine/a.tar.gz", "theirs/a.tar.gz", "one.tar.gz"])
    for (const action of ["s3:PutObject", "s3:DeleteObject", "s3:CreateMultipartUpload"])
      assert.ok(!may(action, name), `${action} ${name}`);
  for (const action of ["logs:PutLogEvents", "cloudwatch:PutMetricData"]) assert.ok(may(action), action);
  const mayPut = (name: string) =>
    mayOn("cloudwatch:PutMetricData", `arn:aws:cloudwatch:us-east-1:000000000000:namespace/${name}`);
  for (const name of ["mine", "Models", "aws"]) assert.ok(mayPut(name), name);
  for (const name of ["/aws/sagemaker/Endpoints", "/aws/sagemaker/TransformJobs", "Galatea/Models", "AWS/SageMaker"])
    assert.ok(!mayPut(name), name);
  for (const action of [
    "sagemaker:CreateModel",
    "sagemaker:DeleteEndpoint",
    "sagemaker:DescribeModel",
    "sts:AssumeRole",
    "sts:GetSessionToken",
    "iam:CreateRole",
    "logs:DeleteLogGroup",
  ])
    assert.ok(!may(action), action);
  for (const action of ["s3:CopyObject", "s3:UploadPartCopy", "s3:DeleteObjects", "s3:CreateBucket", "s3:DeleteBucket"])
    assert.ok(!may(action, "out/x"), action);
});

const ownLogs = [
  { whose: "its own endpoint", own: "/aws/sagemaker/Endpoints/e", others: ["/aws/sagemaker/InferenceComponents/c"] },
  { whose: "its own inference component", own: "/aws/sagemaker/InferenceComponents/c", others: [] },
];

for (const { whose, own, others } of ownLogs) {
  test(`an instance's key writes to the logs of ${whose} and to groups without an owner, not to another's, and lists no others`, () => {
    const { mayOn, instances, id } = keyOf({ logGroup: own });
    const may = (action: string, group: string) =>
      mayOn(action, `arn:aws:logs:us-east-1:000000000000:log-group:${group}`);
    for (const action of [
      "logs:PutLogEvents",
      "logs:CreateLogStream",
      "logs:CreateLogGroup",
      "logs:DescribeLogStreams",
    ]) {
      for (const group of [own, `${own}:log-stream:s`, "my-own", "/aws/sagemaker/Endpointsmine"])
        assert.ok(may(action, group), `${action} ${group}`);
      for (const group of [
        ...others,
        "/aws/sagemaker/Endpoints/other",
        "/aws/sagemaker/Endpoints/e2:log-stream:AllTraffic/i-2",
        "/aws/sagemaker/InferenceComponents/other",
        "/aws/sagemaker/InferenceComponents/c2:log-stream:AllTraffic/i-2",
        "/aws/sagemaker/TransformJobs",
        "/aws/sagemaker/TransformJobs:log-stream:j/i-3",
      ])
        assert.ok(!may(action, group), `${action} ${group}`);
    }
    const theirs = "/aws/sagemaker/Endpoints/other";
    const groups = [own, "my-own", theirs, "/aws/sagemaker/TransformJobs", ...others];
    assert.deepEqual(
      groups.filter((group) => instances.isGroupListed(id, group)),
      [own, "my-own"],
    );
    assert.ok(instances.isGroupListed("OWNER", theirs));
    assert.ok(instances.isGroupListed(null, theirs));
  });
}

test("for an object without an owner, an instance's key permits only the listed actions of the service tables", () => {
  const dependencies = { hosting: {} } as AwsServicesDependencies;
  const iam = { store: null as never, clock: systemClock, randomBytes };
  const executionRole = { roleName: "r", sessionName: "s" };
  const rest = {
    iam,
    executionRole,
    clock: systemClock,
    s3Domain: null,
    requestBytesMax: 1,
    allowedOrigins: new Set<string>(),
  };
  const rows = awsServices({ ...dependencies, ...rest });
  const { mayOn } = keyOf({ objectPrefixes: [{ bucket: "bkt", key: "out/" }] });
  const named = rows.flatMap((row) =>
    row.kind === "modelled"
      ? Object.keys(row.operations).map((name) => `${row.iamPrefix}:${name}`)
      : Object.values(row.operations).map(({ action }) => action),
  );
  const actions = [...new Set(named)];
  // Streams, and calls of OpenAI's API, are invocations.
  const shared = actions.filter((action) => named.filter((other) => other === action).length > 1);
  const shares = ["sagemaker:DescribeEndpoint", "sagemaker:InvokeEndpoint", "sagemaker:ListEndpoints"];
  assert.deepEqual(shared.toSorted(), shares);
  assert.deepEqual(actions.filter((action) => mayOn(action, "arn:aws:s3:::bkt/out/x")).toSorted(), [
    "cloudwatch:PutMetricData",
    "logs:CreateLogGroup",
    "logs:CreateLogStream",
    "logs:DescribeLogGroups",
    "logs:DescribeLogStreams",
    "logs:PutLogEvents",
    "s3:AbortMultipartUpload",
    "s3:CompleteMultipartUpload",
    "s3:CreateMultipartUpload",
    "s3:DeleteObject",
    "s3:GetBucketLocation",
    "s3:GetBucketVersioning",
    "s3:GetObject",
    "s3:GetObjectTagging",
    "s3:HeadBucket",
    "s3:HeadObject",
    "s3:ListBuckets",
    "s3:ListObjects",
    "s3:ListObjectsV2",
    "s3:ListParts",
    "s3:PutObject",
    "s3:UploadPart",
    "sts:GetCallerIdentity",
  ]);
});
