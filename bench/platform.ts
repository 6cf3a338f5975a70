import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { pack, type Pack } from "./archive.ts";
import { CloudWatchClient, GetMetricStatisticsCommand } from "@aws-sdk/client-cloudwatch";
import {
  CreateEndpointCommand,
  CreateEndpointConfigCommand,
  CreateModelCommand,
  SageMakerClient,
  waitUntilEndpointInService,
  type CreateModelCommandInput,
} from "@aws-sdk/client-sagemaker";
import { BucketAlreadyOwnedByYou, CreateBucketCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { freePorts } from "../conformance/environments/index.ts";
import { requestOk } from "./send-request.ts";
import { requestBytes } from "./load.ts";
import { signRequestHeaders } from "@galatea/aws/signing";
import { addSub } from "./models.ts";
import { addSubBody } from "./requests.ts";

const main = fileURLToPath(new URL("../packages/galatea/src/main.ts", import.meta.url));
const region = "us-east-1";
export const benchBucket = "galatea-bench";
const image = "sagemaker-tritonserver:latest";
const role = "arn:aws:iam::123456789012:role/bench";
const startTimeoutMs = 60_000;

/** `galatea up` over a data directory, and the operations of the AWS clients that rows use. */
export interface Platform extends AsyncDisposable {
  readonly port: number;
  readonly pid: number;
  /** Time from the start of the process until it logged its address. */
  readonly upMs: number;
  /** Kills the process with SIGKILL; disposing it has no effect afterwards. */
  kill(): Promise<void>;
  putObject(key: string, content: Uint8Array): Promise<void>;
  putArchive(key: string, content: Pack): Promise<void>;
  /** A multi-model endpoint over every archive below the prefix. */
  createMultiModelEndpoint(
    name: string,
    prefix: string,
    instanceType: string,
    /** `environment` has the variables of the container. */
    more?: { readonly environment?: Record<string, string>; readonly instanceCount?: number },
  ): Promise<void>;
  createModel(name: string, key: string, environment: Record<string, string>): Promise<void>;
  /** Creates an endpoint that is a pipeline of containers, each with an archive. */
  createPipeline(
    name: string,
    containers: readonly { readonly key: string; readonly environment: Record<string, string> }[],
  ): Promise<void>;
}

const credentials = { accessKeyId: "bench-of-the-platform", secretAccessKey: "a-secret-of-the-bench" };

export const clientSettings = (port: number) => ({ endpoint: `http://127.0.0.1:${port}`, region, credentials });

/** Starts the process and waits until it logs its address; kills it if it does not. */
async function spawnPlatform(dataDirectory: string, verifies: boolean) {
  const [port = 0] = await freePorts(1);
  const args = [main, "up", ...(verifies ? [] : ["--open"]), `--port=${port}`, `--data=${dataDirectory}`];
  const keys = {
    GALATEA_ACCESS_KEY_ID: credentials.accessKeyId,
    GALATEA_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  };
  const env = { ...process.env, ...(verifies ? keys : {}) };
  const startMs = performance.now();
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"], detached: true, env });
  const killAtExit = () => child.kill("SIGKILL");
  process.once("exit", killAtExit);
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  void exited.then(() => process.removeListener("exit", killAtExit));
  const end = async (signal: "SIGKILL" | "SIGTERM") => {
    child.kill(signal);
    await exited;
  };
  try {
    await untilUrlPrinted(child.stdout, exited);
  } catch (error) {
    await end("SIGKILL");
    throw error;
  }
  return { port, pid: child.pid ?? 0, upMs: performance.now() - startMs, end };
}

/** `open` accepts every signature; `verifies` requires the bench's key. */
export async function startPlatform(dataDirectory: string, { verifies = false } = {}): Promise<Platform> {
  const { port, pid, upMs, end } = await spawnPlatform(dataDirectory, verifies);
  const settings = clientSettings(port);
  const s3 = new S3Client({ ...settings, forcePathStyle: true });
  const sagemaker = new SageMakerClient(settings);
  const endBy = (signal: "SIGKILL" | "SIGTERM") => {
    s3.destroy();
    sagemaker.destroy();
    return end(signal);
  };
  await s3.send(new CreateBucketCommand({ Bucket: benchBucket })).catch(async (error: unknown) => {
    // A row may restart the platform over the same data.
    if (error instanceof BucketAlreadyOwnedByYou) return;
    await endBy("SIGKILL");
    throw error;
  });
  const putObject = async (key: string, content: Uint8Array) => {
    await s3.send(new PutObjectCommand({ Bucket: benchBucket, Key: key, Body: content }));
  };
  return {
    port,
    pid,
    upMs,
    kill: () => endBy("SIGKILL"),
    putObject,
    putArchive: async (key, content) => putObject(key, await pack(content)),
    async createMultiModelEndpoint(name, prefix, instanceType, { environment = {}, instanceCount = 1 } = {}) {
      const container = {
        Image: image,
        Mode: "MultiModel" as const,
        ModelDataUrl: `s3://${benchBucket}/${prefix}`,
        Environment: environment,
      };
      await createEndpoint(sagemaker, { name, instanceType, instanceCount, model: { PrimaryContainer: container } });
    },
    async createModel(name, key, environment) {
      const container = { Image: image, ModelDataUrl: `s3://${benchBucket}/${key}`, Environment: environment };
      await sagemaker.send(
        new CreateModelCommand({ ModelName: name, ExecutionRoleArn: role, PrimaryContainer: container }),
      );
    },
    async createPipeline(name, containers) {
      const Containers = containers.map(({ key, environment }) => ({
        Image: image,
        ModelDataUrl: `s3://${benchBucket}/${key}`,
        Environment: environment,
      }));
      await createEndpoint(sagemaker, { name, instanceType: "ml.m5.4xlarge", instanceCount: 1, model: { Containers } });
    },
    [Symbol.asyncDispose]: () => endBy("SIGTERM"),
  };
}

async function createEndpoint(
  sagemaker: SageMakerClient,
  {
    name,
    instanceType,
    instanceCount,
    model,
  }: {
    readonly name: string;
    readonly instanceType: string;
    readonly instanceCount: number;
    readonly model: Pick<CreateModelCommandInput, "PrimaryContainer" | "Containers">;
  },
): Promise<void> {
  await sagemaker.send(new CreateModelCommand({ ModelName: name, ExecutionRoleArn: role, ...model }));
  const variant = {
    VariantName: "AllTraffic",
    ModelName: name,
    InstanceType: instanceType as "ml.m5.large",
    InitialInstanceCount: instanceCount,
  };
  await sagemaker.send(new CreateEndpointConfigCommand({ EndpointConfigName: name, ProductionVariants: [variant] }));
  await sagemaker.send(new CreateEndpointCommand({ EndpointName: name, EndpointConfigName: name }));
  await waitUntilEndpointInService(
    { client: sagemaker, maxWaitTime: 60, minDelay: 1, maxDelay: 1 },
    { EndpointName: name },
  );
}

async function untilUrlPrinted(output: NodeJS.ReadableStream, exited: Promise<void>): Promise<void> {
  const lines = createInterface({ input: output });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  lines.on("line", (line) => {
    if (/https?:\/\//.test(line)) resolve();
  });
  const timer = setTimeout(() => reject(new Error("galatea up did not print its URL")), startTimeoutMs);
  void exited.then(() => reject(new Error("galatea up ended before it was ready")));
  try {
    await promise;
  } finally {
    clearTimeout(timer);
  }
}

/** InvokeEndpoint as bytes. The signature is not valid: it only names the service, which a platform without authentication needs. */
export function invokeBytes(endpoint: string, targetModel: string, body: Uint8Array): Uint8Array {
  return requestBytes(`/endpoints/${endpoint}/invocations`, body, invokeHeaders(targetModel));
}

/** A signed invocation of a single-model endpoint. */
export function signedInvocationBytes(port: number, endpoint: string, body: Uint8Array, timeMs: number): Uint8Array {
  const path = `/endpoints/${endpoint}/invocations`;
  const url = new URL(`http://127.0.0.1:${port}${path}`);
  const toSign = { method: "POST", url, body: Buffer.from(body).toString(), region, service: "sagemaker", timeMs };
  const headers = { "content-type": "application/json", host: url.host, ...signRequestHeaders(toSign, credentials) };
  return requestBytes(path, body, headers);
}

/** An invocation of a single-model endpoint. */
export function invocationBytes(endpoint: string, body: Uint8Array): Uint8Array {
  return requestBytes(`/endpoints/${endpoint}/invocations`, body, endpointHeaders);
}

export const invokeHeaders = (targetModel: string) => ({
  ...endpointHeaders,
  "x-amzn-sagemaker-target-model": targetModel,
});

export const endpointHeaders = {
  "content-type": "application/json",
  authorization: `AWS4-HMAC-SHA256 Credential=bench/20260101/${region}/sagemaker/aws4_request, SignedHeaders=host, Signature=${"0".repeat(64)}`,
};

/** Like `Platform.putObject`, but without the SDK, whose processor time would dominate thousands of calls. */
export async function putObject(port: number, key: string, content: Uint8Array): Promise<void> {
  const authorization = endpointHeaders.authorization.replace("/sagemaker/", "/s3/");
  await requestOk(port, "PUT", `/${benchBucket}/${key}`, content, { authorization });
}

/** An operation of SageMaker's control plane. */
export const sageMakerHeaders = (operation: string) => ({
  ...endpointHeaders,
  "content-type": "application/x-amz-json-1.1",
  "x-amz-target": `SageMaker.${operation}`,
});

export function callSageMaker(port: number, operation: string, input: object): Promise<Buffer> {
  return requestOk(port, "POST", "/", Buffer.from(JSON.stringify(input)), sageMakerHeaders(operation));
}

/** A fresh data directory has no Python environment yet. A separate endpoint creates it before the measurement starts. */
export async function warmUp(platform: Platform): Promise<void> {
  await platform.putArchive("warm/add_sub.tar.gz", addSub);
  await platform.createMultiModelEndpoint("warm", "warm/", "ml.m5.large");
  await requestOk(platform.port, "POST", "/endpoints/warm/invocations", addSubBody, invokeHeaders("add_sub.tar.gz"));
}

/** Returns a metric of an endpoint since its creation, from CloudWatch. Throws if there is none, because a default would be judged. */
export async function metricStatistics(
  platform: Platform,
  namespace: string,
  metric: string,
  endpoint: string,
): Promise<{ readonly sum: number; readonly count: number; readonly max: number }> {
  const client = new CloudWatchClient(clientSettings(platform.port));
  try {
    const { Datapoints = [] } = await client.send(
      new GetMetricStatisticsCommand({
        Namespace: namespace,
        MetricName: metric,
        Dimensions: [
          { Name: "EndpointName", Value: endpoint },
          { Name: "VariantName", Value: "AllTraffic" },
        ],
        StartTime: new Date(Date.now() - 3_600_000),
        EndTime: new Date(Date.now() + 60_000),
        Period: 60,
        Statistics: ["Maximum", "Sum", "SampleCount"],
      }),
    );
    if (Datapoints.length === 0) throw new Error(`the platform has no ${metric}`);
    const total = (values: readonly (number | undefined)[]) =>
      values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
    return {
      sum: total(Datapoints.map((point) => point.Sum)),
      count: total(Datapoints.map((point) => point.SampleCount)),
      max: Math.max(...Datapoints.map((point) => point.Maximum ?? 0)),
    };
  } finally {
    client.destroy();
  }
}
