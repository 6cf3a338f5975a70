import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { CloudWatchClient, GetMetricStatisticsCommand, PutMetricDataCommand } from "@aws-sdk/client-cloudwatch";
import { GetRoleCommand, IAMClient, ListRolesCommand } from "@aws-sdk/client-iam";
import {
  CreateModelCommand,
  CreateTrainingJobCommand,
  DescribeEndpointCommand,
  SageMakerClient,
} from "@aws-sdk/client-sagemaker";
import { InvokeEndpointCommand, SageMakerRuntimeClient } from "@aws-sdk/client-sagemaker-runtime";
import { AwsError, silentLogger, systemClock } from "@galatea/base";
import { MemoryDocuments } from "@galatea/hosting/records";
import { cloudwatchService } from "../services/cloudwatch/index.ts";
import { iamService, openIdentityStore } from "../services/iam/index.ts";
import { s3Service } from "../services/s3/index.ts";
import { sagemakerService } from "../services/sagemaker/index.ts";
import { runtimeService } from "../services/sagemaker-runtime/index.ts";
import {
  anyResource,
  openedCall,
  type CallContext,
  type ModelledService,
  type OperationRow,
  type RawExchange,
  type RawOperationRow,
  type ServiceRow,
} from "./service-row.ts";
import { createGateway } from "./gateway.ts";
import { verifiedRequest } from "./body.ts";
import type { GatewayOptions } from "./gateway-options.ts";

const key = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "secret" };
const seen: { input: unknown; context: CallContext }[] = [];
const record =
  (output: object): OperationRow<never>["handle"] =>
  (input, context) => {
    seen.push({ input, context });
    return Promise.resolve(output);
  };
const refuse = (code: string, text: string) => () => Promise.reject(new AwsError(code, text));

function modelled(
  service: Pick<ModelledService, "model" | "scope" | "validationCodes">,
  handlers: Readonly<Record<string, OperationRow<never>["handle"]>>,
): ModelledService {
  const rows = Object.entries(handlers).map(([name, handle]) => {
    return [name, { resource: anyResource, handle }] as const;
  });
  return { ...service, kind: "modelled", iamPrefix: service.scope, operations: Object.fromEntries(rows) };
}

const invocations: RawOperationRow<RawExchange> = {
  action: "sagemaker:InvokeEndpoint",
  resource: anyResource,
  handle({ request, response }) {
    if (request.headers["x-amzn-sagemaker-target-model"] === "late") {
      return Promise.reject(new AwsError("ModelError", "broken", { members: { OriginalStatusCode: 500 } }));
    }
    request.pipe(response);
    return Promise.resolve();
  },
};

const iam = { store: openIdentityStore(new MemoryDocuments(), silentLogger), clock: systemClock, randomBytes };
const unasked = { alarms: null as never, alarmActions: () => null, dashboards: null as never };
const fromServices = { hosting: {} as never, series: null as never, iam, clock: systemClock, ...unasked };
const runtime = runtimeService({
  ...fromServices,
  requestBytesMax: 6 * 2 ** 20,
  streamAbort: new AbortController().signal,
});

const services: readonly ServiceRow[] = [
  modelled(sagemakerService(fromServices), {
    CreateModel: record({ ModelArn: "arn:aws:sagemaker:eu-west-1:1:model/m", Private: "not in the model" }),
    DescribeEndpoint: refuse("ValidationException", 'Could not find endpoint "arn".'),
  }),
  modelled(cloudwatchService(fromServices), {
    GetMetricStatistics: record({
      Label: "Invocations",
      Datapoints: [{ Timestamp: new Date(60_000), Sum: 2.5, Unit: "None" }],
    }),
    PutMetricData: refuse("InvalidParameterValue", "no"),
  }),
  modelled(iamService(fromServices), {
    GetRole: refuse("NoSuchEntity", "The role with name r cannot be found."),
    ListRoles: record({ Roles: [{ RoleName: "a<b&", Path: "/", CreateDate: new Date(0) }], IsTruncated: false }),
  }),
  {
    ...runtime,
    open: async (exchange) =>
      openedCall(invocations, { ...exchange, request: await verifiedRequest(exchange, 6 * 2 ** 20, "sagemaker") }),
  },
];

async function gatewayUrl(options: Partial<GatewayOptions> = {}): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer();
  const common = { services, regionDefault: "us-east-1", accountIdDefault: "111122223333", logger: silentLogger };
  createGateway({ ...common, credentials: null, ...options }).attach(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections();
      return new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}

const client = (endpoint: string, credentials = key) => ({
  endpoint,
  region: "eu-west-1",
  credentials,
  maxAttempts: 1,
});

test("calls of the AWS SDKs are parsed, with the region of the credential scope, and the SDKs parse the responses", async () => {
  await using server = await gatewayUrl();
  const sagemaker = new SageMakerClient(client(server.url));
  const created = await sagemaker.send(new CreateModelCommand({ ModelName: "m", PrimaryContainer: { Image: "i" } }));
  assert.equal(created.ModelArn, "arn:aws:sagemaker:eu-west-1:1:model/m");
  assert.equal("Private" in created, false);
  assert.deepEqual(seen.at(-1)?.input, { ModelName: "m", PrimaryContainer: { Image: "i" } });
  assert.equal(seen.at(-1)?.context.region, "eu-west-1");
  assert.equal(seen.at(-1)?.context.accessKeyId, "AKIDEXAMPLE");
  const window = { StartTime: new Date(0), EndTime: new Date(120_000) };
  const statistics = await new CloudWatchClient(client(server.url)).send(
    new GetMetricStatisticsCommand({ Namespace: "n", MetricName: "m", Period: 60, Statistics: ["Sum"], ...window }),
  );
  assert.deepEqual(statistics.Datapoints, [{ Timestamp: new Date(60_000), Sum: 2.5, Unit: "None" }]);
  assert.deepEqual((seen.at(-1)?.input as { EndTime: Date } | undefined)?.EndTime, new Date(120_000));
  const roles = await new IAMClient(client(server.url)).send(new ListRolesCommand({}));
  assert.equal(roles.Roles?.[0]?.RoleName, "a<b&");
  assert.deepEqual(roles.Roles?.[0]?.CreateDate, new Date(0));
});

test("an invalid input is rejected with every failed constraint, in AWS's wording", async () => {
  await using server = await gatewayUrl();
  const sagemaker = new SageMakerClient(client(server.url));
  const bad = {
    ModelName: "bad_name!",
    PrimaryContainer: { Image: "has space", Mode: "Both" as never, Environment: { "1x": "v" } },
    Tags: [{ Key: "", Value: "v" }],
    VpcConfig: { SecurityGroupIds: ["a b"], Subnets: [] },
  };
  await assert.rejects(sagemaker.send(new CreateModelCommand(bad)), (error: Error) => {
    assert.equal(error.name, "ValidationException");
    const segments = [
      "7 validation errors detected: Value 'bad_name!' at 'modelName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9]([\\-a-zA-Z0-9]*[a-zA-Z0-9])?",
      "Value 'has space' at 'primaryContainer.image' failed to satisfy constraint: Member must satisfy regular expression pattern: [\\S]+",
      "Value 'Both' at 'primaryContainer.mode' failed to satisfy constraint: Member must satisfy enum value set: [SingleModel, MultiModel]",
      "Value '{1x=v}' at 'primaryContainer.environment' failed to satisfy constraint: Map keys must satisfy constraint: [Member must have length less than or equal to 1024, Member must have length greater than or equal to 0, Member must satisfy regular expression pattern: [a-zA-Z_][a-zA-Z0-9_]*]",
      "Value '' at 'tags.1.member.key' failed to satisfy constraint: Member must have length greater than or equal to 1",
      "Value '[a b]' at 'vpcConfig.securityGroupIds' failed to satisfy constraint: Member must satisfy constraint: [Member must have length less than or equal to 32, Member must have length greater than or equal to 0, Member must satisfy regular expression pattern: [-0-9a-zA-Z]+]",
      "Value '[]' at 'vpcConfig.subnets' failed to satisfy constraint: Member must have length greater than or equal to 1",
    ];
    for (const segment of segments) assert.ok(error.message.includes(segment), `${segment}\nnot in\n${error.message}`);
    return true;
  });
  const missing = await json(server.url, "SageMaker.CreateModel", "{}");
  assert.equal(
    missing.body["message"],
    "1 validation error detected: Value null at 'modelName' failed to satisfy constraint: Member must not be null",
  );
  const wrong = await json(server.url, "SageMaker.CreateModel", '{"ModelName":5}');
  assert.equal(wrong.body["__type"], "SerializationException");
  assert.equal(wrong.body["message"], "NUMBER_VALUE can not be converted to a String");
});

test("errors keep their codes in every protocol", async () => {
  await using server = await gatewayUrl();
  const options = client(server.url);
  const name = (expected: string, text: RegExp) => (error: Error) =>
    error.name === expected && text.test(error.message);
  const describe = new SageMakerClient(options).send(new DescribeEndpointCommand({ EndpointName: "e" }));
  await assert.rejects(describe, name("ValidationException", /^Could not find endpoint "arn"\.$/));
  const put = new CloudWatchClient(options).send(new PutMetricDataCommand({ Namespace: "n", MetricData: [] }));
  await assert.rejects(put, (error: Error & { Code?: string }) => error.name.startsWith("InvalidParameterValue"));
  const role = new IAMClient(options).send(new GetRoleCommand({ RoleName: "r" }));
  await assert.rejects(role, name("NoSuchEntityException", /cannot be found/));
  const invoke = new SageMakerRuntimeClient(options).send(
    new InvokeEndpointCommand({ EndpointName: "e", Body: "x", TargetModel: "late" }),
  );
  await assert.rejects(
    invoke,
    (error: Error & { OriginalStatusCode?: number; $metadata?: { httpStatusCode?: number } }) => {
      assert.equal(error.name, "ModelError");
      assert.equal(error.OriginalStatusCode, 500);
      assert.equal(error.$metadata?.httpStatusCode, 424);
      return true;
    },
  );
  const raw = await json(server.url, "GraniteServiceVersion20100801.PutMetricData", '{"Namespace":"n"}');
  assert.equal(raw.headers.get("x-amzn-query-error"), "InvalidParameterValue;Sender");
});

test("an operation that is not implemented is rejected by its name", async () => {
  await using server = await gatewayUrl();
  const job = new SageMakerClient(client(server.url)).send(new CreateTrainingJobCommand({} as never));
  await assert.rejects(job, /The operation sagemaker\.CreateTrainingJob is not implemented by this server/);
  assert.match(String((await json(server.url, "AWSEvents.PutRule", "{}")).body["message"]), /'AWSEvents' is not part/);
  assert.match(String((await json(server.url, "SageMaker.Nonsense", "{}")).body["message"]), /Unknown operation/);
  const form = await fetch(server.url, {
    method: "POST",
    body: new URLSearchParams({ Action: "X", Version: "2010-05-08" }),
  });
  assert.match(await form.text(), /<Code>InvalidAction<\/Code>/);
});

test("a request signed for a known service that names no operation of it is rejected with that reason", async () => {
  await using server = await gatewayUrl();
  const message = async (scope: string, path: string, target: Record<string, string> = {}) => {
    const Authorization = `AWS4-HMAC-SHA256 Credential=A/20261121/us-east-1/${scope}/aws4_request, SignedHeaders=host, Signature=0`;
    const response = await fetch(`${server.url}${path}`, { method: "POST", headers: { Authorization, ...target } });
    return ((await response.json()) as { message: string }).message;
  };
  assert.equal(
    await message("sagemaker", "/bkt/key?x=1"),
    "The request is signed for the service 'sagemaker', which has no operation at POST /bkt/key",
  );
  assert.equal(await message("dynamodb", "/bkt/key"), "The service 'dynamodb' is not part of this server");
  const target = { "x-amz-target": "AWSEvents.PutRule" };
  assert.equal(await message("sagemaker", "/", target), "The service 'AWSEvents' is not part of this server");
  assert.equal(await message("events", "/", target), "The service 'events' is not part of this server");
});

test("a request rejected before its body is read gets the error format of its protocol", async () => {
  const s3 = s3Service({ store: null as never, s3Domain: null });
  await using server = await gatewayUrl({ services: [...services, s3], rejectionText: () => "Not from there." });
  const target = await json(server.url, "SageMaker.CreateModel", "not JSON");
  assert.equal(target.status, 403);
  assert.deepEqual(target.body, { __type: "AccessDeniedException", message: "Not from there." });
  const body = new URLSearchParams({ Action: "X", Version: "none" });
  const form = await fetch(server.url, { method: "POST", body });
  const sender = "<Error><Type>Sender</Type><Code>AccessDenied</Code><Message>Not from there.</Message></Error>";
  assert.deepEqual([form.status, (await form.text()).includes(`<ErrorResponse>${sender}`)], [403, true]);
  const invoke = await fetch(`${server.url}/endpoints/e/invocations`, { method: "POST", body: "x" });
  assert.deepEqual([invoke.status, invoke.headers.get("x-amzn-errortype")], [403, "AccessDeniedException"]);
  const object = await fetch(`${server.url}/bkt/k`);
  const pattern = /<Error><Code>AccessDenied<\/Code><Message>Not from there\.<\/Message><Resource>\/bkt\/k</;
  assert.match(await object.text(), pattern);
  assert.equal(object.status, 403);
  assert.equal(object.headers.get("content-security-policy"), "sandbox; default-src 'none'");
});

test("names of Object.prototype are not services", async () => {
  await using server = await gatewayUrl();
  for (const name of ["__proto__", "constructor", "toString"]) {
    const targeted = await json(server.url, `${name}.x`, "{}");
    assert.equal(targeted.status, 400);
    assert.match(String(targeted.body["message"]), /is not part of this server/);
    const body = new URLSearchParams({ Action: "X", Version: name });
    const form = await fetch(server.url, { method: "POST", body });
    assert.equal(form.status, 400);
    assert.match(await form.text(), /with API version/);
    const headers = { "Smithy-Protocol": "rpc-v2-cbor" };
    const rpc = await fetch(`${server.url}/service/${name}/operation/x`, { method: "POST", headers });
    assert.equal(rpc.status, 400);
    assert.match(await rpc.text(), /is not part of this server/);
    const Authorization = `AWS4-HMAC-SHA256 Credential=A/20261121/us-east-1/${name}/aws4_request, SignedHeaders=host, Signature=0`;
    const scoped = await fetch(server.url, { method: "POST", headers: { Authorization } });
    assert.equal(scoped.status, 400);
    assert.match(await scoped.text(), /is not part of this server/);
  }
});

test("with credentials configured only a correct signature is accepted, including the body's hash", async () => {
  const credential = { ...key, sessionToken: null, accountId: "999988887777", expiresMs: null };
  await using server = await gatewayUrl({ credentials: (id) => (id === key.accessKeyId ? credential : undefined) });
  const command = () => new CreateModelCommand({ ModelName: "m" });
  await new SageMakerClient(client(server.url)).send(command());
  assert.equal(seen.at(-1)?.context.accountId, "999988887777");
  const wrongSecret = new SageMakerClient(client(server.url, { ...key, secretAccessKey: "wrong" })).send(command());
  await assert.rejects(wrongSecret, { name: "InvalidSignatureException" });
  const wrongKey = new SageMakerClient(client(server.url, { ...key, accessKeyId: "OTHER" })).send(command());
  await assert.rejects(wrongKey, { name: "UnrecognizedClientException" });
  const invoke = (options: typeof key) =>
    new SageMakerRuntimeClient(client(server.url, options)).send(
      new InvokeEndpointCommand({ EndpointName: "e", Body: "hello", TargetModel: "a b/c.tar.gz" }),
    );
  assert.equal(Buffer.from((await invoke(key)).Body).toString(), "hello");
  await assert.rejects(invoke({ ...key, secretAccessKey: "wrong" }), { name: "InvalidSignatureException" });
  assert.equal((await json(server.url, "SageMaker.CreateModel", "{}")).status, 403);
});

test("bodies over the limit are rejected, plain and gzip-encoded", async () => {
  await using server = await gatewayUrl({ operationBodyBytesMax: 1000 });
  const plain = await json(server.url, "SageMaker.CreateModel", JSON.stringify({ ModelName: "m".repeat(2000) }));
  assert.equal(plain.status, 413);
});

test("a client that sends a body over the limit to its end still receives the rejection", async () => {
  await using server = await gatewayUrl({ operationBodyBytesMax: 1000 });
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  const head =
    "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Amz-Target: SageMaker.CreateModel\r\nTransfer-Encoding: chunked\r\n\r\n";
  const body = Buffer.alloc(8_000_000, "x");
  // Reads nothing of the response before the request is sent completely.
  socket.pause().write(`${head}${body.byteLength.toString(16)}\r\n`);
  socket.write(body);
  socket.write("\r\n0\r\n\r\n", () => socket.resume());
  assert.match((await buffer(socket)).toString(), /^HTTP\/1\.1 413 /);
});

async function json(url: string, target: string, body: string) {
  const headers = { "X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.1" };
  const response = await fetch(url, { method: "POST", headers, body });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  };
}
