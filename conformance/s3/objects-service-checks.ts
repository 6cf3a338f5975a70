import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { GetObjectCommand, ListObjectsV2Command, PutObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { CreateEndpointCommand, CreateEndpointConfigCommand, CreateModelCommand } from "@aws-sdk/client-sagemaker";
import { InvokeEndpointAsyncCommand } from "@aws-sdk/client-sagemaker-runtime";
import { faultyRequest } from "../faults/http-client.ts";
import { faultyConfig } from "../faults/faulty-model.ts";
import {
  bucket,
  createEndpoint,
  endpointIs,
  image,
  invoke,
  Platform,
  prefix,
  errorOfInvocation,
} from "../faults/platform.ts";
import { tarball } from "../faults/tarball.ts";
import { until } from "../faults/until.ts";

const name = "remote";
const queued = "queued";
const program = await readFile(new URL("../faults/models/faulty.py", import.meta.url));

const archive = () =>
  tarball([
    { path: "model/config.pbtxt", body: faultyConfig },
    { path: "model/1/model.py", body: program },
  ]);

/** A process that is an S3 service, at the same URL after each start. Its data survive SIGKILL. */
export interface S3Service extends AsyncDisposable {
  readonly url: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  readonly s3: S3Client;
  kill(): Promise<void>;
  startAgain(): Promise<void>;
}

async function textOf(s3: S3Client, key: string): Promise<string> {
  const { Body } = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: key }));
  return (await Body?.transformToString()) ?? "";
}

async function keysOf(s3: S3Client): Promise<readonly (string | undefined)[]> {
  const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket: bucket }));
  return Contents.map(({ Key }) => Key);
}

async function createQueue(platform: Platform): Promise<void> {
  await platform.sagemaker.send(
    new CreateModelCommand({
      ModelName: queued,
      ExecutionRoleArn: "arn:aws:iam::000000000000:role/faults",
      PrimaryContainer: { Image: image, ModelDataUrl: `s3://${bucket}/${prefix}a.tar.gz` },
    }),
  );
  const variant = {
    VariantName: "all",
    ModelName: queued,
    InstanceType: "ml.m5.large",
    InitialInstanceCount: 1,
  } as const;
  await platform.sagemaker.send(
    new CreateEndpointConfigCommand({
      EndpointConfigName: queued,
      ProductionVariants: [variant],
      AsyncInferenceConfig: { OutputConfig: { S3OutputPath: `s3://${bucket}/out/` } },
    }),
  );
  await platform.sagemaker.send(new CreateEndpointCommand({ EndpointName: queued, EndpointConfigName: queued }));
  await endpointIs(platform, queued, "InService");
}

/** Tests a platform over a service without buckets, which is killed and started again. */
export function objectsServiceTest(serviceName: string, open: () => Promise<S3Service>): void {
  test(`${serviceName}: a platform stores its objects in the service, and continues by itself after an outage of the service`, async () => {
    await using service = await open();
    const { accessKeyId, secretAccessKey } = service.credentials;
    await using platform = await Platform.open(undefined, {
      verified: true,
      flags: [`--objects=${service.url}`],
      env: { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
    });
    const put = (key: string, Body: string | Uint8Array) =>
      platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body }));
    const call = (target: string) => invoke(platform, name, target, faultyRequest("echo", { value: [3] }));
    const queue = async (key: string) => {
      const input = { InputLocation: `s3://${bucket}/${key}`, ContentType: "application/json" };
      const sent = await platform.runtime.send(new InvokeEndpointAsyncCommand({ EndpointName: queued, ...input }));
      return decodeURIComponent(new URL(sent.OutputLocation ?? "").pathname.slice(1));
    };
    await put(`${prefix}a.tar.gz`, archive());
    await put(`${prefix}b.tar.gz`, archive());
    await put("in/1", faultyRequest("echo", { value: [4] }));
    await createEndpoint(platform, { name });
    await endpointIs(platform, name, "InService");
    assert.match(await call("a.tar.gz"), /"data":\[3\.0\]/);
    await createQueue(platform);
    const output = await queue("in/1");
    assert.match(await until("the queued request is done", () => textOf(service.s3, output).catch(() => null)), /4\.0/);
    assert.deepEqual(await keysOf(service.s3), await keysOf(platform.s3));
    assert.equal(await textOf(service.s3, "in/1"), faultyRequest("echo", { value: [4] }));
    const files = await readdir(join(platform.workspace.data, "objects"), { recursive: true });
    assert.deepEqual(files, ["sending"], "the data directory holds no object");

    await service.kill();
    assert.match(await call("a.tar.gz"), /"data":\[3\.0\]/, "a loaded model needs no object");
    const { status, name: code } = await errorOfInvocation(put("during", "x"));
    assert.deepEqual([status, code], [503, "ServiceUnavailable"]);
    assert.match(platform.log(), /the object store does not respond/);
    const during = await queue("in/1");
    await service.startAgain();
    assert.match(await call("b.tar.gz"), /"data":\[3\.0\]/);
    await put("after", "x");
    assert.equal(await textOf(service.s3, "after"), "x");
    assert.match(platform.log(), /the object store responds again/);
    assert.match(
      await until("the request of meanwhile is done", () => textOf(platform.s3, during).catch(() => null)),
      /4\.0/,
    );
    await until(
      "the platform has sent all",
      async () => (await readdir(join(platform.workspace.data, "objects/sending"))).length === 0,
    );
  });
}
