/**
 * Inference pipelines of real containers whose models call other models: a multi-model container at the front, and a
 * model that calls its own endpoint.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { CreateEndpointCommand, CreateEndpointConfigCommand, CreateModelCommand } from "@aws-sdk/client-sagemaker";
import { InvokeEndpointCommand } from "@aws-sdk/client-sagemaker-runtime";
import { bucket, endpointIs, image, Platform, errorOfInvocation } from "./platform.ts";
import { tarball } from "./tarball.ts";

const config = `backend: "python"
max_batch_size: 0
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
`;
/** Adds its own number. For a negative number, it first calls its own endpoint with its instance's credentials. */
const program = (adds: number) => `
import datetime, hashlib, hmac, json, os, urllib.request
import numpy as np
import triton_python_backend_utils as pb_utils

def signed(url, body):
    """The headers of a POST as SigV4 has them."""
    host, path = url.split("://")[1].split("/", 1)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    scope = "%s/us-east-1/sagemaker/aws4_request" % now[:8]
    digest = lambda data: hashlib.sha256(data).hexdigest()
    canonical = "POST\\n/%s\\n\\nhost:%s\\nx-amz-date:%s\\n\\nhost;x-amz-date\\n%s" % (path, host, now, digest(body))
    text = "AWS4-HMAC-SHA256\\n%s\\n%s\\n%s" % (now, scope, digest(canonical.encode()))
    key = ("AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"]).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    credential = "Credential=%s/%s" % (os.environ["AWS_ACCESS_KEY_ID"], scope)
    authorization = "AWS4-HMAC-SHA256 %s, SignedHeaders=host;x-amz-date, Signature=%s" % (credential, signature)
    return {"Content-Type": "application/json", "X-Amz-Date": now, "Authorization": authorization}

def invoke(endpoint, number):
    url = "%s/endpoints/%s/invocations" % (os.environ["AWS_ENDPOINT_URL"], endpoint)
    body = json.dumps({"X": [number]}).encode()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, body, signed(url, body))
    return json.loads(opener.open(request, timeout=float(os.environ["PATIENCE"])).read())["X"]

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            if x[0] < 0:
                x = np.array([invoke(os.environ["CALLS"], float(x[0]) + 1)], np.float32)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("X", (x + ${adds}).astype(np.float32))]))
        return responses
`;
let platform: Platform;

before(async () => {
  platform = await Platform.open(async () => {}, { verified: true });
  for (const [key, adds] of [
    ["many/ten.tar.gz", 10],
    ["many/twenty.tar.gz", 20],
    ["single.tar.gz", 1],
  ] as const) {
    const Body = tarball([
      { path: "sum/config.pbtxt", body: config },
      { path: "sum/1/model.py", body: program(adds) },
    ]);
    await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body }));
  }
});
after(() => platform[Symbol.asyncDispose]());

const generate = { SAGEMAKER_TRITON_INFERENCE_TYPE: "generate" };
const single = (hostname: string, environment: Record<string, string> = {}) => ({
  ContainerHostname: hostname,
  Image: image,
  ModelDataUrl: `s3://${bucket}/single.tar.gz`,
  Environment: { ...generate, ...environment },
});
const many = (hostname: string) => ({
  ContainerHostname: hostname,
  Image: image,
  Mode: "MultiModel" as const,
  ModelDataUrl: `s3://${bucket}/many/`,
  Environment: generate,
});

async function deploy(name: string, containers: readonly ReturnType<typeof single>[]): Promise<void> {
  const { sagemaker } = platform;
  const role = "arn:aws:iam::000000000000:role/faults";
  await sagemaker.send(
    new CreateModelCommand({ ModelName: name, ExecutionRoleArn: role, Containers: [...containers] }),
  );
  const variant = {
    VariantName: "all",
    ModelName: name,
    InstanceType: "ml.m5.large",
    InitialInstanceCount: 1,
  } as const;
  await sagemaker.send(new CreateEndpointConfigCommand({ EndpointConfigName: name, ProductionVariants: [variant] }));
  await sagemaker.send(new CreateEndpointCommand({ EndpointName: name, EndpointConfigName: name }));
  await endpointIs(platform, name, "InService");
}

async function post(endpoint: string, body: object, targetModel?: string): Promise<string> {
  const reply = await platform.runtime.send(
    new InvokeEndpointCommand({
      EndpointName: endpoint,
      ContentType: "application/json",
      Body: JSON.stringify(body),
      ...(targetModel === undefined ? {} : { TargetModel: targetModel }),
    }),
  );
  return reply.Body.transformToString();
}

/** The generate extension converts a tensor of one element to a number. */
async function call(endpoint: string, number: number): Promise<number> {
  return (JSON.parse(await post(endpoint, { X: [number] })) as { X: number }).X;
}

test("a multi-model Triton container in a pipeline responds for the named model, and a Triton container after it reports that a response is not a valid request", async () => {
  // A container between them must convert outputs to inputs, because Triton's multi-model routes have no generate
  // extension.
  await deploy("behind", [many("models"), single("after")]);
  const inputs = [{ name: "X", datatype: "FP32", shape: [1], data: [5] }];
  const asked = (targetModel: string) => errorOfInvocation(post("behind", { inputs }, targetModel));
  for (const target of ["ten.tar.gz", "twenty.tar.gz"]) {
    const { message } = await asked(target);
    assert.match(message, /^Received client error \(400\) from after with message ".*'outputs'/);
  }
  assert.match(
    (await errorOfInvocation(post("behind", {}, "ten.tar.gz"))).message,
    /^Received client error \(400\) from models with message/,
  );
  const absent = await asked("none.tar.gz");
  assert.match(absent.message, /^Failed to download model data\(bucket: faults, key: many\/none\.tar\.gz\)/);
  await deploy("last", [many("models")]);
  const { outputs } = JSON.parse(await post("last", { inputs }, "twenty.tar.gz")) as { outputs: { data: number[] }[] };
  assert.deepEqual(outputs[0]?.data, [25]);
});

test("a model that calls its own endpoint waits until its own timeout or the invocation's, and the pipeline continues", async () => {
  await deploy("circle", [single("first", { CALLS: "circle", PATIENCE: "1" }), single("second")]);
  assert.equal(await call("circle", 5), 7);
  // At the invocation's time limit the error would be the platform's, without the model's text.
  const error = await errorOfInvocation(call("circle", -3));
  assert.match(error.message, /^Received client error \(400\) from first with message ".*timed out/);
  assert.equal(await call("circle", 5), 7);
  // Many concurrent requests: each occupies a slot of the endpoint and waits for another.
  const outcomes = await Promise.all(Array.from({ length: 4 }, () => errorOfInvocation(call("circle", -1))));
  for (const { message } of outcomes) assert.match(message, /from first with message/);
  assert.equal(await call("circle", 5), 7);
});

test("a model that calls another endpoint's pipeline gets a response like any client", async () => {
  await deploy("called", [single("first"), single("second")]);
  await deploy("calling", [
    single("first", { CALLS: "called", PATIENCE: "20", GALATEA_INVOKABLE_ENDPOINTS: "called" }),
    single("second"),
  ]);
  // (-1 + 1), + 1 and + 1 in the called pipeline, + 1 and + 1 in this one.
  assert.equal(await call("calling", -1), 4);
});
