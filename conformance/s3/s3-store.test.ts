/** Objects in an S3 service pass the same contract tests as objects in a directory. The service is another Galatea. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { objectStoreContract } from "@galatea/hosting/objects/object-store.contract.ts";
import { openS3Store } from "@galatea/hosting/objects/s3";
import { createLogger } from "@galatea/base";
import { openedStore } from "./opened-store.ts";
import { started } from "./started-server.ts";

const credentials = { accessKeyId: "ONE", secretAccessKey: "secret" };

objectStoreContract("S3", async () => openedStore(await started({}), credentials));

test("rejected credentials are an error of the platform, which its log names, and not of the caller's key", async () => {
  await using server = await started({ key: ["ONE", "another secret"] });
  const folder = await mkdtemp(join(tmpdir(), "galatea-s3-store-"));
  const logged: string[] = [];
  const logger = createLogger((_level, message) => void logged.push(message));
  const address = { endpoint: server.url, region: "us-east-1", credentials };
  await using store = await openS3Store({ address, folder, processorCount: 1, logger });
  const page = { prefix: "", delimiter: "", startAfter: "", keysMax: 1 };
  await assert.rejects(store.list("bkt", page), { code: "InternalError", statusFallback: 500 });
  assert.deepEqual(logged, ["the object store rejects the platform's credentials"]);
  // A response to HEAD has no code.
  await assert.rejects(store.headBucket("bkt"), { code: "AccessDenied", statusFallback: 403 });
  await rm(folder, { recursive: true });
});
