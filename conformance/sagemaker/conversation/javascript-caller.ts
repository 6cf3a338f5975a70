import * as applicationAutoScaling from "@aws-sdk/client-application-auto-scaling";
import * as cloudwatch from "@aws-sdk/client-cloudwatch";
import * as logs from "@aws-sdk/client-cloudwatch-logs";
import * as iam from "@aws-sdk/client-iam";
import * as s3 from "@aws-sdk/client-s3";
import * as sagemaker from "@aws-sdk/client-sagemaker";
import * as runtime from "@aws-sdk/client-sagemaker-runtime";
import * as sns from "@aws-sdk/client-sns";
import * as sts from "@aws-sdk/client-sts";
import { CallError, type AwsCaller, type Members } from "./client.ts";

/** By botocore's names. */
const services: Readonly<Record<string, { readonly module: object; readonly client: string }>> = {
  "application-autoscaling": { module: applicationAutoScaling, client: "ApplicationAutoScalingClient" },
  cloudwatch: { module: cloudwatch, client: "CloudWatchClient" },
  iam: { module: iam, client: "IAMClient" },
  logs: { module: logs, client: "CloudWatchLogsClient" },
  s3: { module: s3, client: "S3Client" },
  sagemaker: { module: sagemaker, client: "SageMakerClient" },
  "sagemaker-runtime": { module: runtime, client: "SageMakerRuntimeClient" },
  sns: { module: sns, client: "SNSClient" },
  sts: { module: sts, client: "STSClient" },
};

interface SomeClient {
  send(command: object): Promise<Members>;
  destroy(): void;
}

/** The JavaScript SDK, with what the environment of `galatea env` says given to its clients. */
export class JavaScriptCaller implements AwsCaller {
  readonly name = "the JavaScript SDK";
  readonly #settings: object;
  readonly #clients = new Map<string, SomeClient>();

  constructor(variables: Readonly<Record<string, string>>) {
    this.#settings = {
      endpoint: variables["AWS_ENDPOINT_URL"],
      region: variables["AWS_REGION"] ?? variables["AWS_DEFAULT_REGION"],
      credentials: {
        accessKeyId: variables["AWS_ACCESS_KEY_ID"],
        secretAccessKey: variables["AWS_SECRET_ACCESS_KEY"],
      },
      forcePathStyle: true,
      disableHostPrefix: variables["AWS_DISABLE_HOST_PREFIX_INJECTION"] === "true",
      maxAttempts: 1,
    };
  }

  async call(service: string, operation: string, input: Members): Promise<Members> {
    const Command = exported(service, `${operation}Command`) as new (given: Members) => object;
    try {
      return await whole(await this.#client(service).send(new Command(input)));
    } catch (error) {
      const { name, message } = error as Error;
      throw new CallError(name, message, (error as object).constructor.name);
    }
  }

  async wait(service: string, waiter: string, input: Members): Promise<void> {
    type Waiter = (settings: object, given: Members) => Promise<unknown>;
    const settings = { client: this.#client(service), maxWaitTime: 120, minDelay: 1, maxDelay: 1 };
    await (exported(service, `waitUntil${waiter}`) as Waiter)(settings, input);
  }

  #client(service: string): SomeClient {
    let client = this.#clients.get(service);
    if (client === undefined) {
      const Client = exported(service, services[service]?.client ?? "") as new (settings: object) => SomeClient;
      client = new Client(this.#settings);
      this.#clients.set(service, client);
    }
    return client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients.values()) client.destroy();
  }
}

function exported(service: string, name: string): unknown {
  const module: Members = services[service]?.module ?? {};
  if (module[name] === undefined) throw new Error(`the client of ${service} has no ${name}`);
  return module[name];
}

/** With what is streamed read to its end: bodies, and the events of a streamed answer. */
async function whole(answer: Members): Promise<Members> {
  const body = answer["Body"];
  if (body?.transformToByteArray !== undefined) {
    return { ...answer, Body: Buffer.from(await body.transformToByteArray()) };
  }
  if (body instanceof Uint8Array) return { ...answer, Body: Buffer.from(body) };
  if (body?.[Symbol.asyncIterator] !== undefined) return { ...answer, Body: await Array.fromAsync(body) };
  const session = answer["responseStream"];
  return session === undefined ? answer : { ...answer, responseStream: await firstOf(session) };
}

/** Of a session of events, which has no end, the first. */
async function firstOf(session: AsyncIterable<Members>): Promise<readonly Members[]> {
  for await (const event of session) return [event];
  return [];
}
