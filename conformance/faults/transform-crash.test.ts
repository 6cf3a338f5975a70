/** kill -9 of the platform while a transform job over many small objects stores its outputs in groups. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ListObjectsV2Command, PutObjectCommand } from "@aws-sdk/client-s3";
import { CreateModelCommand, CreateTransformJobCommand, DescribeTransformJobCommand } from "@aws-sdk/client-sagemaker";
import { faultyRequest } from "./http-client.ts";
import { faultyConfig } from "./faulty-model.ts";
import { bucket, image, Platform } from "./platform.ts";
import { tarball } from "./tarball.ts";
import { until } from "./until.ts";

const program = readFileSync(new URL("models/faulty.py", import.meta.url));
const objectCount = 180;
/** Number of outputs that one worker may be writing, and number of those that it requests meanwhile. */
const unrecordedMax = 17;
const deaths = 2;
/** Time limit for the start of a container or the end of a job on a busy machine. */
const patientMs = 90_000;

const outputs = async (platform: Platform) => {
  const listed = await platform.s3.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: "out/" }));
  return (listed.Contents ?? []).map(({ Key = "", ETag = "", LastModified }) => ({
    key: Key,
    etag: ETag,
    madeMs: LastModified?.getTime() ?? 0,
  }));
};

async function begin(platform: Platform): Promise<void> {
  const put = (key: string, body: string | Uint8Array) =>
    platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body }));
  const files = [
    { path: "model/config.pbtxt", body: faultyConfig },
    { path: "model/1/model.py", body: program },
  ];
  await put("model.tar.gz", tarball(files));
  const numbers = Array.from({ length: objectCount }, (_, number) => String(number).padStart(4, "0"));
  const waiting = numbers.values();
  const putNext = async () => {
    for (const number of waiting) await put(`in/${number}`, faultyRequest("echo", { value: [3] }));
  };
  await Promise.all(Array.from({ length: 8 }, putNext));
  const model = { Image: image, ModelDataUrl: `s3://${bucket}/model.tar.gz` };
  const environment = { FAULTS_MEETING: platform.workspace.meeting };
  await platform.sagemaker.send(
    new CreateModelCommand({
      ModelName: "faulty",
      ExecutionRoleArn: "arn:aws:iam::000000000000:role/faults",
      PrimaryContainer: { ...model, Environment: environment },
    }),
  );
  await platform.sagemaker.send(
    new CreateTransformJobCommand({
      TransformJobName: "small",
      ModelName: "faulty",
      MaxConcurrentTransforms: 1,
      TransformInput: {
        DataSource: { S3DataSource: { S3DataType: "S3Prefix", S3Uri: `s3://${bucket}/in/` } },
        ContentType: "application/json",
      },
      TransformOutput: { S3OutputPath: `s3://${bucket}/out` },
      TransformResources: { InstanceType: "ml.m5.large", InstanceCount: 1 },
    }),
  );
}

test("after kill -9 among outputs that are stored in groups every observed output is kept, few are written again, and the job completes", async () => {
  await using platform = await Platform.open();
  await begin(platform);
  for (let death = 1; death <= deaths; death++) {
    const seen = await until(
      "more outputs are there",
      async () => {
        const found = await outputs(platform);
        return found.length >= death * 50 ? found : null;
      },
      patientMs,
    );
    await platform.kill();
    const killedMs = Date.now();
    await platform.startAgain();
    const after = new Map((await outputs(platform)).map((output) => [output.key, output]));
    for (const { key, etag } of seen) assert.equal(after.get(key)?.etag, etag, key);
    await until(
      "the job goes on",
      async () => (await outputs(platform)).length > after.size || after.size === objectCount,
      patientMs,
    );
    const again = (await outputs(platform)).filter(({ key, madeMs }) => after.has(key) && madeMs > killedMs);
    assert.ok(again.length <= unrecordedMax, `${again.length} objects were written again`);
  }
  const job = await until(
    "the job has ended",
    async () => {
      const reply = await platform.sagemaker.send(new DescribeTransformJobCommand({ TransformJobName: "small" }));
      return reply.TransformJobStatus === "InProgress" ? null : reply;
    },
    patientMs,
  );
  assert.equal(job.TransformJobStatus, "Completed", job.FailureReason);
  const created = await outputs(platform);
  assert.equal(created.length, objectCount);
  assert.equal(new Set(created.map(({ etag }) => etag)).size, 1);
});
