import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { CreateBucketCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import {
  CreateEndpointCommand,
  CreateEndpointConfigCommand,
  CreateModelCommand,
  DeleteEndpointCommand,
  DescribeEndpointCommand,
  DescribeModelCommand,
  SageMakerClient,
  waitUntilEndpointDeleted,
  waitUntilEndpointInService,
  type ProductionVariantInstanceType,
} from "@aws-sdk/client-sagemaker";
import { InvokeEndpointCommand, SageMakerRuntimeClient } from "@aws-sdk/client-sagemaker-runtime";

const models = join(import.meta.dirname, "../../examples/add_sub/models");
const inService = { maxWaitTime: 120, minDelay: 1, maxDelay: 1 };
const row = { datatype: "FP32", shape: [1, 4], data: [1, 2, 3, 4] };
const body = JSON.stringify({ inputs: ["INPUT0", "INPUT1"].map((name) => ({ name, ...row })) });

export interface DeploymentOptions {
  readonly instanceType?: ProductionVariantInstanceType;
  readonly instanceCount?: number;
}

/** AWS SDK clients of one platform, for endpoints with the example model `add_sub`. */
export class PlatformClient {
  readonly #s3: S3Client;
  readonly #sagemaker: SageMakerClient;
  readonly #runtime: SageMakerRuntimeClient;

  /** `attemptsMax`: how often the SDK sends an invocation until it succeeds. */
  constructor(
    endpoint: string,
    credentials: { readonly accessKeyId: string; readonly secretAccessKey: string },
    attemptsMax = 3,
  ) {
    const options = { endpoint, region: "us-east-1", credentials };
    this.#s3 = new S3Client({ ...options, forcePathStyle: true });
    this.#sagemaker = new SageMakerClient(options);
    this.#runtime = new SageMakerRuntimeClient({ ...options, maxAttempts: attemptsMax });
  }

  /** Creates a bucket, a model, an endpoint configuration and an endpoint, all named `name`, and waits until the endpoint is in service. */
  async deploy(name: string): Promise<void> {
    await this.create(name);
    await this.inService(name);
  }

  /** Creates the same objects as `deploy`, and does not wait. */
  async create(
    name: string,
    { instanceType: InstanceType = "ml.t2.medium", instanceCount = 1 }: DeploymentOptions = {},
  ): Promise<void> {
    await this.#s3.send(new CreateBucketCommand({ Bucket: name }));
    const Body = execFileSync("tar", ["-C", models, "-cz", "add_sub"]);
    await this.#s3.send(new PutObjectCommand({ Bucket: name, Key: "model.tar.gz", Body }));
    await this.#sagemaker.send(
      new CreateModelCommand({
        ModelName: name,
        ExecutionRoleArn: "arn:aws:iam::000000000000:role/AmazonSageMaker-DefaultRole",
        PrimaryContainer: {
          Image: "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3",
          ModelDataUrl: `s3://${name}/model.tar.gz`,
          Environment: { SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "add_sub" },
        },
      }),
    );
    const variant = { VariantName: "AllTraffic", ModelName: name, InstanceType };
    const ProductionVariants = [{ ...variant, InitialInstanceCount: instanceCount, InitialVariantWeight: 1 }];
    await this.#sagemaker.send(new CreateEndpointConfigCommand({ EndpointConfigName: name, ProductionVariants }));
    await this.#sagemaker.send(new CreateEndpointCommand({ EndpointName: name, EndpointConfigName: name }));
  }

  /** Waits until an endpoint is `Failed`, and returns its FailureReason. */
  async failureReason(name: string): Promise<string> {
    const waiting = waitUntilEndpointInService({ client: this.#sagemaker, ...inService }, { EndpointName: name });
    await waiting.catch(() => {});
    const { FailureReason = "" } = await this.#sagemaker.send(new DescribeEndpointCommand({ EndpointName: name }));
    return FailureReason;
  }

  /** Deletes an endpoint and waits until it is gone. */
  async deleteEndpoint(name: string): Promise<void> {
    await this.#sagemaker.send(new DeleteEndpointCommand({ EndpointName: name }));
    await waitUntilEndpointDeleted({ client: this.#sagemaker, ...inService }, { EndpointName: name });
  }

  /** Waits until an endpoint is in service. */
  async inService(name: string): Promise<void> {
    await waitUntilEndpointInService({ client: this.#sagemaker, ...inService }, { EndpointName: name });
  }

  /** Invokes the endpoint, and returns the sum of two rows that the model has computed. */
  async invoke(name: string): Promise<readonly number[] | undefined> {
    const call = { EndpointName: name, ContentType: "application/json", Body: body };
    const response = await this.#runtime.send(new InvokeEndpointCommand(call));
    const { outputs } = JSON.parse(response.Body.transformToString()) as { outputs: { data: number[] }[] };
    return outputs[0]?.data;
  }

  /** Returns the descriptions of a model and its endpoint, without fields that change during the lifetime of the endpoint. */
  async records(name: string): Promise<readonly unknown[]> {
    const model = await this.#sagemaker.send(new DescribeModelCommand({ ModelName: name }));
    const endpoint = await this.#sagemaker.send(new DescribeEndpointCommand({ EndpointName: name }));
    return [model.ModelArn, model.CreationTime, model.PrimaryContainer, endpoint.EndpointArn, endpoint.CreationTime];
  }
}
