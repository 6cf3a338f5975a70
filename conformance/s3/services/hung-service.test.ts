/** A platform whose S3 service keeps its connections open and does not respond. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { CreateEndpointCommand } from "@aws-sdk/client-sagemaker";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { FaultyNetwork } from "../../../packages/hosting/test/faulty-network-fixture.ts";
import { freePorts } from "../../environments/index.ts";
import { faultyRequest } from "../../faults/http-client.ts";
import { faultyConfig } from "../../faults/faulty-model.ts";
import {
  bucket,
  createEndpoint,
  credentials,
  endpointIs,
  invoke,
  Platform,
  prefix,
  errorOfInvocation,
} from "../../faults/platform.ts";
import { tarball } from "../../faults/tarball.ts";
import { started } from "../started-server.ts";

const program = await readFile(new URL("../../faults/models/faulty.py", import.meta.url));
const echo = faultyRequest("echo", { value: [3] });

test("a platform whose S3 service hangs starts, serves loaded models, and rejects new endpoints with 503", async () => {
  await using service = await started({});
  await using network = await FaultyNetwork.open(Number(new URL(service.url).port));
  await using platform = await Platform.open(undefined, {
    // Instances with another URL would be started again.
    port: (await freePorts(1))[0] ?? 0,
    flags: [`--objects=http://127.0.0.1:${network.port}`],
    env: { AWS_ACCESS_KEY_ID: credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey },
  });
  const archive = tarball([
    { path: "model/config.pbtxt", body: faultyConfig },
    { path: "model/1/model.py", body: program },
  ]);
  const put = (key: string, Body: Uint8Array | string) =>
    platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body }));
  await put(`${prefix}a.tar.gz`, archive);
  await put(`${prefix}b.tar.gz`, archive);
  const single = { name: "single", modelDataUrl: `s3://${bucket}/${prefix}a.tar.gz` };
  await createEndpoint(platform, { name: "many" });
  await createEndpoint(platform, single);
  for (const name of ["many", "single"]) await endpointIs(platform, name, "InService");
  assert.match(await invoke(platform, "many", "a.tar.gz", echo), /3\.0/);

  await platform.kill();
  network.isSilent = true;
  await platform.startAgain();
  assert.match(await invoke(platform, "many", "a.tar.gz", echo), /3\.0/);
  assert.match(await invoke(platform, "single", null, echo), /3\.0/);
  for (const body of ["short", Buffer.alloc(2 ** 21)])
    assert.equal((await errorOfInvocation(put("x", body))).status, 503);
  const cold = await errorOfInvocation(invoke(platform, "many", "b.tar.gz", echo));
  assert.match(cold.message, /object store does not respond/);
  const creation = createEndpoint(platform, { ...single, name: "during" });
  assert.deepEqual(await errorOfInvocation(creation).then(({ status, name }) => [status, name]), [
    503,
    "ServiceUnavailable",
  ]);

  network.isSilent = false;
  assert.match(await invoke(platform, "many", "b.tar.gz", echo), /3\.0/);
  const input = { EndpointName: "during", EndpointConfigName: "during" };
  await platform.sagemaker.send(new CreateEndpointCommand(input));
  await endpointIs(platform, "during", "InService");
  assert.match(await invoke(platform, "during", null, echo), /3\.0/);
});
