/** Model code of an endpoint that never returns: its worker is ended when no caller waits any more, and queued requests succeed. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { FilterLogEventsCommand, CloudWatchLogsClient } from "@aws-sdk/client-cloudwatch-logs";
import { GetObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { CreateEndpointCommand, CreateEndpointConfigCommand, CreateModelCommand } from "@aws-sdk/client-sagemaker";
import { InvokeEndpointAsyncCommand } from "@aws-sdk/client-sagemaker-runtime";
import { faultyRequest } from "./http-client.ts";
import { faultyConfig } from "./faulty-model.ts";
import { bucket, credentials, endpointIs, image, Platform } from "./platform.ts";
import { tarball } from "./tarball.ts";
import { until } from "./until.ts";

const name = "hung";
const limitMs = 2000;

/** Content of the object at the URL; null while it does not exist. */
async function textAt(platform: Platform, url: string | undefined): Promise<string | null> {
  const { pathname } = new URL(url ?? "");
  const get = new GetObjectCommand({ Bucket: bucket, Key: pathname.slice(1) });
  const found = await platform.s3.send(get).catch(() => null);
  return found === null ? null : await found.Body!.transformToString();
}

test("a worker that hangs is ended with its current call, its stack is in the endpoint's log, and the next calls succeed", async () => {
  await using platform = await Platform.open();
  const put = (key: string, body: string | Uint8Array) =>
    platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body, ContentType: "application/json" }));
  await put(
    "model.tar.gz",
    tarball([
      { path: "model/config.pbtxt", body: faultyConfig },
      { path: "model/1/model.py", body: readFileSync(new URL("models/faulty.py", import.meta.url)) },
    ]),
  );
  const container = {
    Image: image,
    ModelDataUrl: `s3://${bucket}/model.tar.gz`,
    Environment: { FAULTS_MEETING: platform.workspace.meeting },
  };
  await platform.sagemaker.send(
    new CreateModelCommand({
      ModelName: name,
      ExecutionRoleArn: "arn:aws:iam::000000000000:role/faults",
      PrimaryContainer: container,
    }),
  );
  await platform.sagemaker.send(
    new CreateEndpointConfigCommand({
      EndpointConfigName: name,
      ProductionVariants: [
        { VariantName: "all", ModelName: name, InstanceType: "ml.m5.large", InitialInstanceCount: 1 },
      ],
      AsyncInferenceConfig: {
        OutputConfig: { S3OutputPath: `s3://${bucket}/out`, S3FailurePath: `s3://${bucket}/failed` },
        ClientConfig: { MaxConcurrentInvocationsPerInstance: 4 },
      },
    }),
  );
  await platform.sagemaker.send(new CreateEndpointCommand({ EndpointName: name, EndpointConfigName: name }));
  await endpointIs(platform, name, "InService");
  const request = async (does: string, limitSeconds: number) => {
    await put(`in/${does}`, faultyRequest(does));
    return await platform.runtime.send(
      new InvokeEndpointAsyncCommand({
        EndpointName: name,
        InputLocation: `s3://${bucket}/in/${does}`,
        ContentType: "application/json",
        InvocationTimeoutSeconds: limitSeconds,
      }),
    );
  };
  const hung = await request("hold hung", limitMs / 1000);
  const lag = await Promise.all(["echo", "pid"].map((does) => request(does, 60)));
  const failure = await until("the hung call has failed", () => textAt(platform, hung.FailureLocation));
  assert.match(failure, /timed out while waiting for a response|more than \d+ ms/);
  for (const { OutputLocation } of lag) {
    assert.match(await until("the waiting call gets a response", () => textAt(platform, OutputLocation)), /"OUT"/);
  }
  using logs = {
    client: new CloudWatchLogsClient({ endpoint: platform.url, region: "us-east-1", credentials }),
    [Symbol.dispose]() {
      this.client.destroy();
    },
  };
  await until("the log has the stack", async () => {
    const filter = new FilterLogEventsCommand({ logGroupName: `/aws/sagemaker/Endpoints/${name}` });
    const text = (await logs.client.send(filter)).events?.map(({ message }) => message).join("\n") ?? "";
    return (
      /the Python stack of the worker follows/.test(text) &&
      /model\.py", line \d+ in hold/.test(text) &&
      /took more than \d+ ms/.test(text)
    );
  });
});
