import { CloudWatchClient, GetMetricStatisticsCommand } from "@aws-sdk/client-cloudwatch";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import {
  CreateEndpointCommand,
  CreateEndpointConfigCommand,
  CreateModelCommand,
  DescribeEndpointCommand,
  SageMakerClient,
  waitUntilEndpointInService,
} from "@aws-sdk/client-sagemaker";
import { InvokeEndpointCommand, SageMakerRuntimeClient } from "@aws-sdk/client-sagemaker-runtime";
import { tenantName, uploadTenant } from "./tenants.ts";

export const tenantCount = 24;
const bucket = "galatea-story";
const prefix = "tenants/";
const warmCalls = 3;
const memoryBudgetBytes = 384 * 2 ** 20;

/** What the platform's clients sign with. */
export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** One tenant's answers: the embeddings of all sentences, and what the client waited. */
export interface Visit {
  readonly tenant: string;
  readonly embeddings: readonly (readonly number[])[];
  readonly coldMs: number;
  readonly warmMs: readonly number[];
}

/** How often models were loaded and unloaded. */
export interface ModelCounts {
  readonly loads: number;
  readonly unloads: number;
}

/** The platform as its users see it: through the AWS SDK and nothing else. */
export class Hosting {
  readonly endpointName = "sentence-embeddings";
  readonly #s3: S3Client;
  readonly #sagemaker: SageMakerClient;
  readonly #runtime: SageMakerRuntimeClient;
  readonly #cloudwatch: CloudWatchClient;
  readonly #startedMs = Date.now();
  readonly #abort: { readonly abortSignal: AbortSignal };

  /** Requests under way end when the signal says so. */
  constructor(url: string, credentials: Credentials, signal: AbortSignal) {
    this.#abort = { abortSignal: signal };
    const options = {
      endpoint: url,
      region: "us-east-1",
      credentials,
    };
    this.#s3 = new S3Client({ ...options, forcePathStyle: true });
    this.#sagemaker = new SageMakerClient(options);
    this.#runtime = new SageMakerRuntimeClient(options);
    this.#cloudwatch = new CloudWatchClient(options);
  }

  async uploadTenants(repository: string, staging: string, detail: (text: string) => void): Promise<void> {
    await this.#s3.send(new CreateBucketCommand({ Bucket: bucket }), this.#abort).catch((error: Error) => {
      if (error.name !== "BucketAlreadyOwnedByYou") throw error;
    });
    for (let i = 0; i < tenantCount; i++) {
      const tenant = tenantName(i);
      const key = `${prefix}${tenant}.tar.gz`;
      const { abortSignal } = this.#abort;
      const fresh = await uploadTenant(this.#s3, { bucket, key }, { repository, staging, tenant }, abortSignal);
      if (fresh) detail(`${i + 1} of ${tenantCount} uploaded`);
    }
  }

  /** Creates the endpoint, or finds it in service from the last time. */
  async createEndpoint(): Promise<void> {
    const name = this.endpointName;
    if (!(await this.#exists())) {
      await this.#sagemaker.send(
        new CreateModelCommand({
          ModelName: name,
          ExecutionRoleArn: "arn:aws:iam::000000000000:role/AmazonSageMaker-DefaultRole",
          PrimaryContainer: {
            Image: "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3",
            ModelDataUrl: `s3://${bucket}/${prefix}`,
            Mode: "MultiModel",
            // Small on purpose, so that the story shows evictions: the encoder once, and about a dozen tenants' Python steps.
            Environment: { GALATEA_MODEL_MEMORY_BYTES: String(memoryBudgetBytes) },
          },
        }),
        this.#abort,
      );
      await this.#sagemaker.send(
        new CreateEndpointConfigCommand({
          EndpointConfigName: name,
          ProductionVariants: [
            {
              VariantName: "AllTraffic",
              ModelName: name,
              InstanceType: "ml.t2.medium",
              InitialInstanceCount: 1,
              InitialVariantWeight: 1,
            },
          ],
        }),
        this.#abort,
      );
      await this.#sagemaker.send(
        new CreateEndpointCommand({ EndpointName: name, EndpointConfigName: name }),
        this.#abort,
      );
    }
    await waitUntilEndpointInService(
      { client: this.#sagemaker, ...this.#abort, maxWaitTime: 120, minDelay: 1, maxDelay: 2 },
      { EndpointName: name },
    );
  }

  async #exists(): Promise<boolean> {
    try {
      await this.#sagemaker.send(new DescribeEndpointCommand({ EndpointName: this.endpointName }), this.#abort);
      return true;
    } catch (error) {
      if (/Could not find/.test((error as Error).message)) return false;
      throw error;
    }
  }

  async visitTenants(sentences: readonly string[], detail: (text: string) => void): Promise<readonly Visit[]> {
    const visits: Visit[] = [];
    for (let i = 0; i < tenantCount; i++) {
      const tenant = tenantName(i);
      detail(tenant);
      const cold = await this.embed(tenant, sentences);
      const warmMs: number[] = [];
      for (let call = 0; call < warmCalls; call++) warmMs.push((await this.embed(tenant, sentences)).tookMs);
      visits.push({ tenant, embeddings: cold.embeddings, coldMs: cold.tookMs, warmMs });
    }
    return visits;
  }

  /** Asks the tenants of the beginning again: their models were evicted, their files are still there. */
  async revisitTenants(sentences: readonly string[], count: number): Promise<readonly number[]> {
    const tookMs: number[] = [];
    for (let i = 0; i < count; i++) tookMs.push((await this.embed(tenantName(i), sentences)).tookMs);
    return tookMs;
  }

  async embed(
    tenant: string,
    sentences: readonly string[],
  ): Promise<{ readonly embeddings: readonly (readonly number[])[]; readonly tookMs: number }> {
    const body = { inputs: [{ name: "TEXT", shape: [sentences.length, 1], datatype: "BYTES", data: sentences }] };
    const startMs = performance.now();
    const reply = await this.#runtime.send(
      new InvokeEndpointCommand({
        EndpointName: this.endpointName,
        TargetModel: `${tenant}.tar.gz`,
        ContentType: "application/json",
        Body: JSON.stringify(body),
      }),
      this.#abort,
    );
    const tookMs = performance.now() - startMs;
    const { outputs } = JSON.parse(reply.Body.transformToString()) as {
      outputs: readonly { name: string; shape: readonly number[]; data: readonly number[] }[];
    };
    const output = outputs.find((each) => each.name === "EMBEDDING");
    const width = output?.shape.at(-1) ?? 0;
    return { embeddings: sentences.map((_, i) => output?.data.slice(i * width, (i + 1) * width) ?? []), tookMs };
  }

  /**
   * What the endpoint did so far, as CloudWatch tells it. Its minutes begin before this story does, and the story before this one may
   * have ended in the same minute: what was done between two calls is their difference.
   */
  async modelCounts(): Promise<ModelCounts> {
    const loads = await this.#samples("ModelLoadingTime");
    const unloads = await this.#samples("ModelUnloadingTime");
    return { loads, unloads };
  }

  async #samples(metric: string): Promise<number> {
    const { Datapoints } = await this.#cloudwatch.send(
      new GetMetricStatisticsCommand({
        Namespace: "AWS/SageMaker",
        MetricName: metric,
        Dimensions: [
          { Name: "EndpointName", Value: this.endpointName },
          { Name: "VariantName", Value: "AllTraffic" },
        ],
        StartTime: new Date(this.#startedMs - 60_000),
        EndTime: new Date(Date.now() + 60_000),
        Period: 3600,
        Statistics: ["SampleCount"],
      }),
      this.#abort,
    );
    return (Datapoints ?? []).reduce((sum, point) => sum + (point.SampleCount ?? 0), 0);
  }
}

/** What was done between two looks. */
export function countsBetween(before: ModelCounts, after: ModelCounts): ModelCounts {
  return { loads: after.loads - before.loads, unloads: after.unloads - before.unloads };
}
