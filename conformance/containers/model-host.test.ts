import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after } from "node:test";
import { silentLogger, systemClock } from "@galatea/base";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import type { InstanceAddress, InstanceSpec } from "@galatea/hosting";
import { EngineRunner } from "@galatea/hosting/container-host";
import { modelHostContract } from "@galatea/hosting/contracts";
import { nodeWith } from "@galatea/hosting/nodes/node-fixture.ts";
import { ArchiveUnpacker, archiveLimits, openDirectoryStore, unpackerDefaults } from "@galatea/hosting/objects";
import { ProcessHost } from "@galatea/hosting/process-host";
import { tarball } from "../faults/tarball.ts";
import { startDocker } from "./docker-engine.ts";

const bucket = "models";
const never = new AbortController().signal;
const root = mkdtempSync(join(tmpdir(), "galatea-containers-"));
const engine = await startDocker();
const image = await engine.build("contract");
after(async () => {
  await engine[Symbol.asyncDispose]();
  rmSync(root, { recursive: true, force: true });
});
let count = 0;

const originOf = (address: InstanceAddress) =>
  address.kind === "socket" ? "http://ended.invalid" : `http://${address.host}:${address.port}`;

async function ping(address: InstanceAddress): Promise<number | null> {
  try {
    const reply = await fetch(`${originOf(address)}/ping`, { signal: AbortSignal.timeout(2000) });
    await reply.arrayBuffer();
    return reply.status;
  } catch {
    return null;
  }
}

const containersOf = async (label: string) =>
  (await engine.docker("ps", "--all", "--quiet", "--filter", `label=${label}`)).split("\n").filter((id) => id !== "");

modelHostContract("containers of images", async () => {
  const directory = await mkdtemp(join(root, "w"));
  const instancesDirectory = join(directory, "i");
  const opened = new AsyncDisposableStack();
  const store = opened.use(await openDirectoryStore({ folder: join(directory, "objects"), logger: silentLogger }));
  await store.createBucket(bucket);
  const contentDirectory = join(directory, "content");
  const limits = archiveLimits;
  const unpacker = opened.use(new ArchiveUnpacker({ ...unpackerDefaults, contentDirectory, limits }));
  const clocked = { clock: systemClock, logger: silentLogger };
  const openHost = async () => {
    const images = await EngineRunner.open({
      address: engine.address,
      platform: instancesDirectory,
      network: null,
      gpuCount: 0,
      dockerConfigPath: join(directory, "none.json"),
      ...clocked,
    });
    const host = new ProcessHost({
      commandFor: () => assert.fail("a container of an image is not a process of this machine"),
      socketsDirectory: join(directory, "s"),
      instancesDirectory,
      store,
      unpacker,
      images,
      ...clocked,
    });
    const close = async () => {
      await host[Symbol.asyncDispose]();
      await images[Symbol.asyncDispose]();
    };
    return { host, close };
  };
  let current = await openHost();
  await current.host.resume([]);
  return {
    get host() {
      return current.host;
    },
    specFor: (behaviour, more = {}): InstanceSpec => ({
      instanceId: `i-${(count += 1)}`,
      node: nodeWith().id,
      owner: null,
      budget: { vcpuCount: 1, memoryBytes: 2 ** 30 },
      containers: [
        {
          title: "endpoint/variant/i-1",
          concurrencyMax: null,
          runtime: { image },
          models: { kind: "one", container: {}, bringMsMax: testTimeoutMs },
          environment: { BEHAVIOUR: behaviour },
          modelMemoryBytes: 2 ** 28,
          output: () => {},
          ...more,
        },
      ],
    }),
    ping,
    put: async (key) => {
      const body = tarball([{ path: "answer", body: "0123456789" }]);
      const { etag } = await store.put(bucket, key, Readable.from([body]), { signal: never });
      return { url: `s3://${bucket}/${key}`, etag, archiveBytes: body.length };
    },
    async reopen() {
      await current.close();
      current = await openHost();
      return current.host;
    },
    kill: (container) => {
      assert.ok("id" in container && typeof container.id === "string");
      void engine.docker("kill", "--signal=KILL", container.id);
    },
    hasLeft: async (instanceId) =>
      readdirSync(instancesDirectory).some((name) => name === instanceId || name.startsWith(`${instanceId}-`)) ||
      (await containersOf(`galatea.instance=${instanceId}`)).length > 0,
    async [Symbol.asyncDispose]() {
      await current.close();
      await opened.disposeAsync();
      assert.deepEqual(await containersOf(`galatea.platform=${instancesDirectory}`), [], "containers are running");
    },
  };
});
