import assert from "node:assert/strict";
import { GetObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { CreateTransformJobCommand, DescribeTransformJobCommand } from "@aws-sdk/client-sagemaker";
import { orNull, bucket, pause, type Clients, type Workload } from "./clients.ts";
import { responseOf } from "./acknowledged-value.ts";
import { requestBody } from "./model-archive.ts";

const lookMs = 20;
const inputs = Array.from({ length: 5 }, (_, index) => `rows/${index}`);

/** Runs transform jobs. Each acknowledged job must finally be completed, with one output for each input. */
export class TransformWorkload implements Workload {
  readonly #model: string;
  #count = 0;
  /** The names of acknowledged jobs that are not known to be completed. */
  readonly #jobs = new Set<string>();

  constructor(model: string) {
    this.#model = model;
  }

  begin(clients: Clients): Promise<void> {
    return this.check(clients);
  }

  async step(clients: Clients): Promise<void> {
    const { s3, sagemaker } = clients;
    if (this.#count === 0) {
      for (const Key of inputs)
        await responseOf(s3.send(new PutObjectCommand({ Bucket: bucket, Key, Body: requestBody })));
    }
    const name = `job-${(this.#count += 1)}`;
    const source = { S3DataSource: { S3DataType: "S3Prefix" as const, S3Uri: `s3://${bucket}/rows/` } };
    const job = new CreateTransformJobCommand({
      TransformJobName: name,
      ModelName: this.#model,
      TransformInput: { DataSource: source, ContentType: "application/json" },
      TransformOutput: { S3OutputPath: `s3://${bucket}/${name}/` },
      TransformResources: { InstanceType: "ml.m5.large", InstanceCount: 1 },
    });
    await responseOf(sagemaker.send(job));
    this.#jobs.add(name);
    await this.check(clients);
  }

  async check(clients: Clients): Promise<void> {
    for (const name of this.#jobs) {
      const { status, reason } = await ended(clients, name);
      assert.equal(status, "Completed", reason);
      for (const input of inputs) {
        const Key = `${name}/${input.replace("rows/", "")}.out`;
        const output = await responseOf(orNull(clients.s3.send(new GetObjectCommand({ Bucket: bucket, Key }))));
        assert.match((await output?.Body?.transformToString()) ?? "", /"data":\[2\.0\]/, Key);
      }
      this.#jobs.delete(name);
    }
  }
}

async function ended(
  { sagemaker }: Clients,
  name: string,
): Promise<{ readonly status: string; readonly reason: string }> {
  for (;;) {
    const response = sagemaker.send(new DescribeTransformJobCommand({ TransformJobName: name }));
    const { TransformJobStatus: status = "", FailureReason: reason = "" } = await responseOf(response);
    if (status !== "InProgress" && status !== "Stopping") return { status, reason };
    await pause(lookMs);
  }
}
