import { CloudWatchClient, GetMetricStatisticsCommand } from "@aws-sdk/client-cloudwatch";
import { CopyObjectCommand, CreateBucketCommand, HeadObjectCommand, S3Client } from "@aws-sdk/client-s3";
import {
  CreateEndpointCommand,
  CreateEndpointConfigCommand,
  CreateModelCommand,
  DescribeEndpointCommand,
  SageMakerClient,
  waitUntilEndpointInService,
} from "@aws-sdk/client-sagemaker";
import { InvokeEndpointCommand, SageMakerRuntimeClient } from "@aws-sdk/client-sagemaker-runtime";
import { uploadArchive } from "./archive.ts";

const bucket = "galatea-story";

/** A multi-model endpoint of all archives below a prefix. */
export interface EndpointPlan {
  readonly name: string;
  /** Ends with a slash. */
  readonly prefix: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** The keys with which clients sign requests. */
export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** An output tensor of a JSON response. */
export interface OutputTensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

export interface ModelResponse {
  readonly outputs: readonly OutputTensor[];
  /** Latency on the client's side, in milliseconds. */
  readonly tookMs: number;
}

/** Numbers of loads and unloads of models. */
export interface ModelCounts {
  readonly loads: number;
  readonly unloads: number;
}

export interface HostingAccess {
  readonly url: string;
  readonly credentials: Credentials;
  readonly signal: AbortSignal;
}

/** Calls the platform as its users do, only through the AWS SDK. */
export class Hosting {
  readonly #plan: EndpointPlan;
  readonly #s3: S3Client;
  readonly #sagemaker: SageMakerClient;
  readonly #runtime: SageMakerRuntimeClient;
  readonly #cloudwatch: CloudWatchClient;
  readonly #startedMs = Date.now();
  readonly #abort: { readonly abortSignal: AbortSignal };

  /** The signal aborts requests in flight. */
  constructor(plan: EndpointPlan, { url, credentials, signal }: HostingAccess) {
    this.#plan = plan;
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

  get endpointName(): string {
    return this.#plan.name;
  }

  async makeBucket(): Promise<void> {
    await this.#s3.send(new CreateBucketCommand({ Bucket: bucket }), this.#abort).catch((error: Error) => {
      if (error.name !== "BucketAlreadyOwnedByYou") throw error;
    });
  }

  /** Packs a directory as an archive of the endpoint and uploads it, unless it is there. */
  async upload(archive: string, directory: string, detail: (text: string) => void): Promise<void> {
    if (await this.#isUploaded(archive)) return;
    const at = { bucket, key: this.#keyOf(archive) };
    await uploadArchive(this.#s3, at, { directory, detail, signal: this.#abort.abortSignal });
  }

  /** Copies an archive in S3. Returns false if the copy exists already. */
  async copy(archive: string, to: string): Promise<boolean> {
    if (await this.#isUploaded(to)) return false;
    const CopySource = `${bucket}/${this.#keyOf(archive)}`;
    await this.#s3.send(new CopyObjectCommand({ Bucket: bucket, Key: this.#keyOf(to), CopySource }), this.#abort);
    return true;
  }

  async #isUploaded(archive: string): Promise<boolean> {
    const head = new HeadObjectCommand({ Bucket: bucket, Key: this.#keyOf(archive) });
    const found = await this.#s3.send(head, this.#abort).catch((error: Error) => {
      if (error.name === "NotFound") return null;
      throw error;
    });
    return found !== null;
  }

  #keyOf(archive: string): string {
    return `${this.#plan.prefix}${archive}`;
  }

  /** Creates the endpoint unless it is in service from an earlier run. */
  async createEndpoint(): Promise<void> {
    const { name, prefix, environment } = this.#plan;
    if (!(await this.#exists())) {
      await this.#sagemaker.send(
        new CreateModelCommand({
          ModelName: name,
          ExecutionRoleArn: "arn:aws:iam::000000000000:role/AmazonSageMaker-DefaultRole",
          PrimaryContainer: {
            Image: "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3",
            ModelDataUrl: `s3://${bucket}/${prefix}`,
            Mode: "MultiModel",
            Environment: environment,
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

  /** Invokes a model of the endpoint with JSON: `body` has the format of Triton's clients. */
  async ask(archive: string, body: unknown): Promise<ModelResponse> {
    const startMs = performance.now();
    const reply = await this.#runtime.send(
      new InvokeEndpointCommand({
        EndpointName: this.endpointName,
        TargetModel: archive,
        ContentType: "application/json",
        Body: JSON.stringify(body),
      }),
      this.#abort,
    );
    const tookMs = performance.now() - startMs;
    const { outputs } = JSON.parse(reply.Body.transformToString()) as Pick<ModelResponse, "outputs">;
    return { outputs, tookMs };
  }

  /**
   * Returns the endpoint's numbers of loads and unloads from CloudWatch. Its periods of a minute may include the end of
   * an earlier story, so callers subtract two results.
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

/** Returns the difference of two counts. */
export function countsBetween(before: ModelCounts, after: ModelCounts): ModelCounts {
  return { loads: after.loads - before.loads, unloads: after.unloads - before.unloads };
}
