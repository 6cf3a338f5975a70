/**
 * Runs the JavaScript SDK for another program, in the protocol of `lines.py`: `javascript-lines.ts FOLDER`, with the
 * folder whose `node_modules` has the SDK. The environment has the variables of `galatea env`.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { CallError, type Members } from "./client.ts";
import { decoded, encoded, type LineRequest } from "./line-values.ts";

/** The SDK's modules by botocore's names of services. */
const services: Readonly<Record<string, { readonly module: string; readonly client: string }>> = {
  "application-autoscaling": { module: "client-application-auto-scaling", client: "ApplicationAutoScalingClient" },
  cloudwatch: { module: "client-cloudwatch", client: "CloudWatchClient" },
  iam: { module: "client-iam", client: "IAMClient" },
  logs: { module: "client-cloudwatch-logs", client: "CloudWatchLogsClient" },
  s3: { module: "client-s3", client: "S3Client" },
  sagemaker: { module: "client-sagemaker", client: "SageMakerClient" },
  "sagemaker-runtime": { module: "client-sagemaker-runtime", client: "SageMakerRuntimeClient" },
  sns: { module: "client-sns", client: "SNSClient" },
  sts: { module: "client-sts", client: "STSClient" },
};

interface SomeClient {
  send(command: object): Promise<Members>;
  destroy(): void;
}

/** Settings that the SDK does not read from the environment. */
const settings = {
  disableHostPrefix: process.env["AWS_DISABLE_HOST_PREFIX_INJECTION"] === "true",
  maxAttempts: 1,
};
const load = createRequire(join(process.argv[2] ?? "", "package.json"));
const clients = new Map<string, SomeClient>();

function exported(service: string, name: string): unknown {
  const module = load(`@aws-sdk/${services[service]?.module}`) as Members;
  if (module[name] === undefined) throw new Error(`the client of ${service} has no ${name}`);
  return module[name];
}

function clientOf(service: string): SomeClient {
  let client = clients.get(service);
  if (client === undefined) {
    const Client = exported(service, services[service]?.client ?? "") as new (given: object) => SomeClient;
    client = new Client(settings);
    clients.set(service, client);
  }
  return client;
}

async function call(service: string, operation: string, input: Members): Promise<Members> {
  const Command = exported(service, `${operation}Command`) as new (given: Members) => object;
  try {
    return await complete(await clientOf(service).send(new Command(input)));
  } catch (error) {
    // An error without metadata is not from a service, but a bug of this program or the SDK.
    if (!("$metadata" in (error as object))) throw error;
    const { name, message } = error as Error;
    throw new CallError(name, message, (error as object).constructor.name);
  }
}

async function wait(service: string, waiter: string, input: Members): Promise<Members> {
  type Waiter = (settings: object, value: Members) => Promise<unknown>;
  const until = exported(service, `waitUntil${waiter}`) as Waiter;
  try {
    await until({ client: clientOf(service), maxWaitTime: 120, minDelay: 1, maxDelay: 1 }, input);
    return {};
  } catch (error) {
    throw new CallError("WaiterError", (error as Error).message, "");
  }
}

/** Returns a response whose streams are read to their end: bodies, and the events of a streamed response. */
async function complete(response: Members): Promise<Members> {
  const body = response["Body"];
  if (body?.transformToByteArray !== undefined) return { ...response, Body: await body.transformToByteArray() };
  if (body?.[Symbol.asyncIterator] !== undefined) return { ...response, Body: await Array.fromAsync(body) };
  const session = response["responseStream"];
  return session === undefined ? response : { ...response, responseStream: await firstOf(session) };
}

/** Returns the first event of a session, which has no end. */
async function firstOf(session: AsyncIterable<Members>): Promise<readonly Members[]> {
  for await (const event of session) return [event];
  return [];
}

async function responded({ kind, service, name, input }: LineRequest): Promise<Members> {
  try {
    return { answer: encoded(await (kind === "call" ? call : wait)(service, name, decoded(input) as Members)) };
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    return { code: error.code, message: error.message, kind: error.kind };
  }
}

for await (const line of createInterface(process.stdin)) {
  process.stdout.write(`${JSON.stringify(await responded(JSON.parse(line) as LineRequest))}\n`);
}
for (const client of clients.values()) client.destroy();
