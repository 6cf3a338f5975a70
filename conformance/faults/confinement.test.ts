/** The operator is notified of confinement that the machine or the configuration does not permit. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { faultyRequest } from "./http-client.ts";
import { hostileArchive } from "./hostile-model.ts";
import { bucket, createEndpoint, endpointIs, invoke, Platform, prefix } from "./platform.ts";
import { until } from "./until.ts";

test("/health lists the confinements that are missing for tenants", async () => {
  await using platform = await Platform.open(undefined, { flags: ["--worker-users=none"] });
  const Body = hostileArchive(Buffer.alloc(1));
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: `${prefix}one.tar.gz`, Body }));
  await createEndpoint(platform, { name: "alone" });
  await endpointIs(platform, "alone", "InService");
  await invoke(platform, "alone", "one.tar.gz", faultyRequest("pid"));
  const told = async () => ((await (await fetch(`${platform.url}/health`)).json()) as Reported).unconfined;
  await until("the container was pinged again", async () => Object.keys(await told()).length > 0);
  assert.equal((await told())["users"], "--worker-users=none");
});

interface Reported {
  readonly unconfined: Readonly<Record<string, string>>;
}
