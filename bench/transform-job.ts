import { setTimeout } from "node:timers/promises";
import { CloudWatchLogsClient, GetLogEventsCommand } from "@aws-sdk/client-cloudwatch-logs";
import { CreateTransformJobCommand, DescribeTransformJobCommand, SageMakerClient } from "@aws-sdk/client-sagemaker";
import { benchBucket, clientSettings } from "./platform.ts";

export interface BenchJob {
  readonly name: string;
  readonly modelName: string;
  /** Prefix of the input objects, whose lines are requests. */
  readonly prefix: string;
  readonly contentType: string;
  readonly concurrency: number;
}

const logGroup = "/aws/sagemaker/TransformJobs";
const lookMs = 500;
const endedMsMax = 600_000;

/**
 * Runs a job until it completes. The time is the difference between the job's log lines about its start and its end; it
 * excludes the start and the end of containers.
 */
export async function runTransform(port: number, job: BenchJob): Promise<{ readonly elapsedMs: number }> {
  const sagemaker = new SageMakerClient(clientSettings(port));
  const logs = new CloudWatchLogsClient(clientSettings(port));
  try {
    await sagemaker.send(
      new CreateTransformJobCommand({
        TransformJobName: job.name,
        ModelName: job.modelName,
        BatchStrategy: "SingleRecord",
        MaxConcurrentTransforms: job.concurrency,
        TransformInput: {
          DataSource: { S3DataSource: { S3DataType: "S3Prefix", S3Uri: `s3://${benchBucket}/${job.prefix}` } },
          ContentType: job.contentType,
          SplitType: "Line",
        },
        TransformOutput: {
          S3OutputPath: `s3://${benchBucket}/out/${job.name}`,
          Accept: job.contentType,
          AssembleWith: "Line",
        },
        TransformResources: { InstanceType: "ml.m5.4xlarge", InstanceCount: 1 },
      }),
    );
    await ended(sagemaker, job.name);
    const reported = new GetLogEventsCommand({
      logGroupName: logGroup,
      logStreamName: `${job.name}/data-log`,
      startFromHead: true,
    });
    const { events = [] } = await logs.send(reported);
    const time = (text: string) => {
      const message = events.find((event) => event.message?.includes(text) === true)?.message;
      if (message === undefined) throw new Error(`the log of the job does not say: ${text}`);
      return Date.parse(message.slice(0, message.indexOf(" ")));
    };
    return { elapsedMs: time(" the job is over: ") - time(" the job runs: ") };
  } finally {
    sagemaker.destroy();
    logs.destroy();
  }
}

async function ended(sagemaker: SageMakerClient, name: string): Promise<void> {
  const deadlineMs = performance.now() + endedMsMax;
  while (performance.now() < deadlineMs) {
    const job = await sagemaker.send(new DescribeTransformJobCommand({ TransformJobName: name }));
    if (job.TransformJobStatus === "Completed") return;
    if (job.TransformJobStatus !== "InProgress")
      throw new Error(`the job is ${job.TransformJobStatus}: ${job.FailureReason}`);
    await setTimeout(lookMs);
  }
  throw new Error(`the job ${name} has not ended after ${endedMsMax} ms`);
}
