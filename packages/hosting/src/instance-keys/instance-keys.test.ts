import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createLogger, silentLogger } from "@galatea/base";
import type { InstanceIdentity } from "../instances/index.ts";
import { openDocuments, type DocumentChange } from "../records/index.ts";
import { DocumentMemory, MemoryDocuments } from "../records/contracts/index.ts";
import { InstanceKeys } from "./instance-keys.ts";

const identity: InstanceIdentity = {
  instanceId: "i-1",
  containerName: "primary",
  endpointName: "e",
  accountId: "000000000000",
  region: "eu-west-1",
  logGroup: "/aws/sagemaker/Endpoints/e",
  modelData: { bucket: "bkt", key: "models/", kind: "tenants" },
  objectPrefixes: [{ bucket: "bkt", key: "out/" }],
  invokableEndpoints: ["other"],
};

const platformUrl = "http://127.0.0.1:8900";

/** Documents whose writes reject with `error` while it is set. */
class RefusingMemory extends DocumentMemory {
  error: Error | null = null;
  writeCount = 0;

  override write(changes: readonly DocumentChange[]): number {
    this.writeCount += 1;
    if (this.error !== null) throw this.error;
    return super.write(changes);
  }
}

const openKeys = (memory: DocumentMemory, logger = silentLogger) =>
  InstanceKeys.open({ documents: new MemoryDocuments(memory), platformUrl, randomBytes, logger });

const idOf = ({ environment }: ReturnType<InstanceKeys["issue"]>) => environment["AWS_ACCESS_KEY_ID"] ?? "";

test("an instance gets the variables of its key, and a key of its own", async () => {
  const keys = await openKeys(new DocumentMemory());
  const { environment } = keys.issue(identity);
  const { AWS_ACCESS_KEY_ID: accessKeyId = "", AWS_SECRET_ACCESS_KEY: secretAccessKey, ...rest } = environment;
  assert.deepEqual(rest, {
    AWS_ENDPOINT_URL: platformUrl,
    AWS_REGION: "eu-west-1",
    AWS_DEFAULT_REGION: "eu-west-1",
    AWS_EC2_METADATA_DISABLED: "true",
  });
  assert.deepEqual(keys.find(accessKeyId), { accessKeyId, secretAccessKey, identity });
  const others = [{ instanceId: "i-2" }, { containerName: "container-2" }].map((more) =>
    idOf(keys.issue({ ...identity, ...more })),
  );
  assert.equal(new Set([accessKeyId, ...others]).size, 3);
  assert.equal(keys.find("GALI0"), undefined);
});

test("a key is in the database, outlives the process that issued it, and is issued again only for an equal identity", async () => {
  const directory = await mkdtemp(join(tmpdir(), "gal-keys-"));
  try {
    const path = join(directory, "galatea.db");
    const opened = async () => {
      const documents = await openDocuments({ path, logger: silentLogger });
      return {
        documents,
        keys: await InstanceKeys.open({ documents, platformUrl, randomBytes, logger: silentLogger }),
      };
    };
    const first = await opened();
    const issued = first.keys.issue(identity);
    assert.deepEqual(first.keys.issue(identity).environment, issued.environment);
    await issued.record();
    await first.documents[Symbol.asyncDispose]();

    const second = await opened();
    assert.deepEqual(second.keys.find(idOf(issued))?.identity, identity);
    assert.deepEqual(second.keys.issue(structuredClone(identity)).environment, issued.environment);
    const changed = second.keys.issue({ ...identity, objectPrefixes: [] });
    assert.notEqual(idOf(changed), idOf(issued));
    assert.equal(second.keys.find(idOf(issued)), undefined);
    await changed.record();
    await second.documents[Symbol.asyncDispose]();

    const third = await opened();
    assert.equal(third.keys.find(idOf(issued)), undefined);
    assert.deepEqual(third.keys.find(idOf(changed))?.identity.objectPrefixes, []);
    await third.documents[Symbol.asyncDispose]();
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("a key ends with its instance, recorded or not, and thousands of starts leave nothing", async () => {
  const memory = new DocumentMemory();
  const keys = await openKeys(memory);
  for (let index = 0; index < 3000; index++) {
    const issued = keys.issue({ ...identity, instanceId: `i-${index}` });
    const recorded = index % 6 === 0 ? Promise.resolve() : issued.record();
    // Some instances end while their key is being written.
    for (let tick = 0; tick < index % 5; tick++) await Promise.resolve();
    await issued[Symbol.asyncDispose]();
    await recorded;
    assert.equal(keys.find(idOf(issued)), undefined);
    // A late call of `record` for a revoked key writes nothing.
    await issued.record();
  }
  assert.equal(memory.held.size, 0);
});

test("an instance that starts again and again is one write", async () => {
  const memory = new RefusingMemory();
  const keys = await openKeys(memory);
  const issued = keys.issue(identity);
  await Promise.all([issued.record(), issued.record()]);
  await issued.record();
  assert.equal(memory.writeCount, 1);
});

test("a start keeps the keys of the instances that run and ends all others, in one write", async () => {
  const memory = new RefusingMemory();
  const before = await openKeys(memory);
  const issued = ["i-1", "i-2", "i-3"].flatMap((instanceId) =>
    ["primary", "container-2"].map((containerName) => before.issue({ ...identity, instanceId, containerName })),
  );
  for (const each of issued) await each.record();
  const keys = await openKeys(memory);
  memory.writeCount = 0;
  await keys.keepOnly(new Set(["i-2", "i-9"]));
  assert.equal(memory.writeCount, 1);
  const found = (each: InstanceKeys) => issued.map((key) => each.find(idOf(key))?.identity.instanceId);
  const expected = [undefined, undefined, "i-2", "i-2", undefined, undefined];
  assert.deepEqual(found(keys), expected);
  assert.deepEqual(found(await openKeys(memory)), expected);
  await keys.keepOnly(new Set(["i-2"]));
  assert.equal(memory.writeCount, 1);
});

test("on a full disk the record fails with the reason, and the next attempt writes it", async () => {
  const memory = new RefusingMemory();
  const keys = await openKeys(memory);
  const issued = keys.issue(identity);
  memory.error = Object.assign(new Error("database or disk is full"), { code: "ENOSPC" });
  await assert.rejects(issued.record(), {
    message: "the instance's access key cannot be recorded: the disk that holds the platform's records is full",
  });
  memory.error = null;
  await issued.record();
  assert.equal((await openKeys(memory)).find(idOf(issued))?.identity.instanceId, "i-1");
});

test("a key is revoked at once even if its record cannot be removed; the next start removes the record", async () => {
  const lines: string[] = [];
  const memory = new RefusingMemory();
  const keys = await openKeys(
    memory,
    createLogger((_, message) => lines.push(message)),
  );
  const issued = keys.issue(identity);
  await issued.record();
  memory.error = Object.assign(new Error("database or disk is full"), { code: "ENOSPC" });
  await issued[Symbol.asyncDispose]();
  assert.equal(keys.find(idOf(issued)), undefined);
  assert.match(lines.join("\n"), /the access key of a removed instance stays recorded until the next start/);
  memory.error = null;
  await (await openKeys(memory)).keepOnly(new Set());
  assert.equal(memory.held.size, 0);
});
