/** Model code calls the platform with the credentials of its instance, and with no others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GetObjectCommand, ListBucketsCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { DeleteEndpointCommand, ListModelsCommand, SageMakerClient } from "@aws-sdk/client-sagemaker";
import { InvokeEndpointCommand, SageMakerRuntimeClient } from "@aws-sdk/client-sagemaker-runtime";
import { freePorts } from "../environments/index.ts";
import { faultyRequest } from "./http-client.ts";
import { faultyConfig } from "./faulty-model.ts";
import { bucket, createEndpoint, credentials, endpointIs, invoke, Platform, errorOfInvocation } from "./platform.ts";
import { tarball } from "./tarball.ts";
import { until } from "./until.ts";

/** Responds with what its AWS clients read, and with the platform's response to its own request without a signature. */
const program = `import json, os, urllib.error, urllib.request
import numpy as np
import triton_python_backend_utils as pb_utils

def unsigned():
    if "AWS_ENDPOINT_URL" not in os.environ:
        return 0
    request = urllib.request.Request(os.environ["AWS_ENDPOINT_URL"] + "/", b"{}", {
        "Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "SageMaker.ListModels"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return opener.open(request, timeout=10).status
    except urllib.error.HTTPError as error:
        return error.code

class TritonPythonModel:
    def execute(self, requests):
        told = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        text = np.array([json.dumps({"environment": told, "unsigned": unsigned()})], np.object_)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("TEXT", text)]) for _ in requests]
`;

interface Reported {
  readonly environment: Readonly<Record<string, string>>;
  readonly unsigned: number;
}

async function told(platform: Platform, name: string): Promise<Reported> {
  const { outputs } = JSON.parse(await invoke(platform, name, null, faultyRequest("tell"))) as {
    outputs: { data: string[] }[];
  };
  return JSON.parse(outputs[0]?.data[0] ?? "") as Reported;
}

test("model code signs with its instance's key, which permits only a model's operations and expires with the instance", async () => {
  await using platform = await Platform.open(async () => {}, {
    verified: true,
    flags: ["--endpoint-objects-bytes=100000"],
  });
  const body = tarball([
    { path: "m/config.pbtxt", body: faultyConfig },
    { path: "m/1/model.py", body: program },
  ]);
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: "single.tar.gz", Body: body }));
  const modelDataUrl = `s3://${bucket}/single.tar.gz`;
  const environment = { GALATEA_OBJECT_PREFIXES: `s3://${bucket}/results/`, GALATEA_INVOKABLE_ENDPOINTS: "own" };
  await createEndpoint(platform, { name: "signs", modelDataUrl, environment });
  await createEndpoint(platform, { name: "own", modelDataUrl, environment: { AWS_ACCESS_KEY_ID: "mine" } });
  for (const name of ["signs", "own"]) await endpointIs(platform, name, "InService");
  const { environment: variables, unsigned } = await told(platform, "signs");
  assert.equal(unsigned, 403);
  assert.equal(variables["AWS_ENDPOINT_URL"], platform.url);
  assert.equal(variables["AWS_REGION"], "us-east-1");
  assert.ok(!JSON.stringify(variables).includes(credentials.secretAccessKey));
  const options = clientOf(platform, variables);
  const s3 = new S3Client(options);
  const sagemaker = new SageMakerClient(options);
  const own = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: "single.tar.gz" }));
  assert.equal((await own.Body?.transformToByteArray())?.byteLength, body.byteLength);
  await s3.send(new PutObjectCommand({ Bucket: bucket, Key: "results/1", Body: "x" }));
  const tooMuch = s3.send(new PutObjectCommand({ Bucket: bucket, Key: "results/2", Body: Buffer.alloc(95_000) }));
  assert.deepEqual(await errorOfInvocation(tooMuch), {
    name: "InsufficientStorage",
    status: 507,
    message:
      "The quota of 'signs' in the object store is exceeded: 4097 bytes are stored (with 4096 for the metadata of each object), " +
      "99096 more were requested, and the limit is 100000 bytes",
  });
  const invoked = new InvokeEndpointCommand({
    EndpointName: "own",
    ContentType: "application/json",
    Body: faultyRequest("tell"),
  });
  await new SageMakerRuntimeClient(options).send(invoked);
  const overwriting = s3.send(new PutObjectCommand({ Bucket: bucket, Key: "single.tar.gz", Body: "evil" }));
  assert.deepEqual(await errorOfInvocation(overwriting).then(({ name, status }) => [name, status]), [
    "AccessDenied",
    403,
  ]);
  for (const call of [
    sagemaker.send(new DeleteEndpointCommand({ EndpointName: "own" })),
    sagemaker.send(new ListModelsCommand({})),
  ]) {
    const { name, message } = await errorOfInvocation(call);
    assert.equal(name, "AccessDeniedException");
    assert.match(message, /^User: GALI\w+ is not authorized to perform: sagemaker:(?:DeleteEndpoint|ListModels) on/);
  }
  // A definition with its own credentials gets none of the platform's in addition.
  assert.deepEqual((await told(platform, "own")).environment, {
    AWS_ACCESS_KEY_ID: "mine",
    AWS_REGION: "us-east-1",
    AWS_DEFAULT_REGION: "us-east-1",
  });
  await endsWithItsInstance(platform, s3);
});

test("the key of an instance that outlives its platform is valid at the next one, and expires with the instance", async () => {
  const [port = 0] = await freePorts(1);
  await using platform = await Platform.open(async () => {}, { verified: true, port });
  const body = tarball([
    { path: "m/config.pbtxt", body: faultyConfig },
    { path: "m/1/model.py", body: program },
  ]);
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: "single.tar.gz", Body: body }));
  await createEndpoint(platform, { name: "signs", modelDataUrl: `s3://${bucket}/single.tar.gz` });
  await endpointIs(platform, "signs", "InService");
  const { environment: variables } = await told(platform, "signs");
  await platform.kill();
  await platform.startAgain();
  assert.deepEqual((await told(platform, "signs")).environment, variables);
  const s3 = new S3Client(clientOf(platform, variables));
  await s3.send(new GetObjectCommand({ Bucket: bucket, Key: "single.tar.gz" }));
  await endsWithItsInstance(platform, s3);
});

/** Settings of an AWS client that signs with these variables. */
const clientOf = (platform: Platform, variables: Readonly<Record<string, string>>) => ({
  endpoint: platform.url,
  region: "us-east-1",
  credentials: {
    accessKeyId: variables["AWS_ACCESS_KEY_ID"] ?? "",
    secretAccessKey: variables["AWS_SECRET_ACCESS_KEY"] ?? "",
  },
  maxAttempts: 1,
  forcePathStyle: true,
});

async function endsWithItsInstance(platform: Platform, s3: S3Client): Promise<void> {
  await platform.sagemaker.send(new DeleteEndpointCommand({ EndpointName: "signs" }));
  await until("the key has ended with its instance", async () => {
    const { name } = await s3.send(new ListBucketsCommand({})).then(
      () => ({ name: "" }),
      (error: Error) => error,
    );
    return name === "InvalidAccessKeyId";
  });
}
