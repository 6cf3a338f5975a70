import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { Header } from "tar";
import { silentLogger, systemClock } from "@galatea/base";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import { readProcessStart, startDetached } from "@galatea/base/processes";
import { signalGroup } from "@galatea/base/system";
import { nodeWith } from "../nodes/node-fixture.ts";
import { ArchiveUnpacker, archiveLimits, openDirectoryStore, unpackerDefaults } from "../objects/index.ts";
import { modelHostContract, modelTreesContract } from "../contracts/index.ts";
import type { ContainerSpec, InstanceAddress, InstanceSpec } from "../instances/index.ts";
import { containerModelId, type ModelArchive } from "../model-cache/index.ts";
import { readBootId, writeContainerFile } from "./container-file.ts";
import { ProcessHost } from "./process-host.ts";
import { ProcessContainer } from "./process-container.ts";
import { DirectoryTrees } from "./directory-trees.ts";

const root = mkdtempSync(join(tmpdir(), "gal-host-"));
after(() => rmSync(root, { recursive: true, force: true }));

const program = join(root, "container.mjs");
writeFileSync(
  program,
  `import { existsSync } from "node:fs";
  import { createServer } from "node:http";
  const parent = process.ppid; setInterval(() => process.ppid === parent || process.exit(), 1000).unref(); // Killed tests leave none.
  const [behaviour, socketPath, mlRoot] = process.argv.slice(2);
  if (behaviour === "fail") {
    console.log("starting");
    console.error("no such model");
    process.exitCode = 3;
  } else {
    if (behaviour === "hang") process.on("SIGTERM", () => {});
    else process.on("SIGTERM", () => process.exit(0));
    const isThere = behaviour === "hang" || existsSync(mlRoot + "/model/answer");
    createServer((_, response) => response.writeHead(isThere ? 200 : 500).end()).listen(socketPath);
  }`,
);

const never = new AbortController().signal;
const bucket = "models";
let count = 0;

function archive(path: string, body: Buffer): Buffer {
  const header = new Header({ path, type: "File", size: body.length, mode: 0o644, mtime: new Date(0) });
  header.encode();
  assert.ok(header.block);
  return gzipSync(Buffer.concat([header.block, body, Buffer.alloc(-body.length & 511), Buffer.alloc(1024)]));
}

/** Opens an object store and an unpacker in a new temporary directory. */
async function openWorld() {
  const directory = await mkdtemp(join(root, "w"));
  const store = await openDirectoryStore({ folder: join(directory, "objects"), logger: silentLogger });
  await store.createBucket(bucket);
  const contentDirectory = join(directory, "content");
  const unpacker = new ArchiveUnpacker({ ...unpackerDefaults, contentDirectory, limits: archiveLimits });
  return {
    directory,
    store,
    unpacker,
    put: async (key: string, path: string, fileBytes: number) => {
      const body = archive(path, Buffer.alloc(fileBytes, fileBytes % 251));
      const { etag } = await store.put(bucket, key, Readable.from([body]), { signal: never });
      return { etag, archiveBytes: body.length };
    },
    async [Symbol.asyncDispose]() {
      await unpacker[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

const requestPlace = (address: InstanceAddress) =>
  address.kind === "socket" ? { socketPath: address.path } : { host: address.host, port: address.port };

modelHostContract("process host", async () => {
  const fixture = await openWorld();
  const { directory, store, unpacker } = fixture;
  const instancesDirectory = join(directory, "i");
  const openHost = () =>
    new ProcessHost({
      commandFor: ({ spec, mlRoot, socketPath }) => ({
        command: process.execPath,
        args: [program, spec.environment.BEHAVIOUR ?? "", socketPath, mlRoot],
        env: { ...spec.environment },
      }),
      socketsDirectory: join(directory, "s"),
      instancesDirectory,
      store,
      unpacker,
      clock: systemClock,
      logger: silentLogger,
    });
  let host = openHost();
  await host.resume([]);
  return {
    get host() {
      return host;
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
          runtime: "tritonserver",
          models: { kind: "one", container: {}, bringMsMax: testTimeoutMs },
          environment: { BEHAVIOUR: behaviour },
          modelMemoryBytes: 2 ** 29,
          output: () => {},
          ...more,
        },
      ],
    }),
    ping: (address) =>
      new Promise((resolve) => {
        const outgoing = request({ ...requestPlace(address), path: "/ping", agent: false }, (response) => {
          response.resume();
          resolve(response.statusCode ?? null);
        });
        outgoing.on("error", () => resolve(null));
        outgoing.end();
      }),
    put: async (key) => ({ url: `s3://${bucket}/${key}`, ...(await fixture.put(key, "answer", 10)) }),
    async reopen() {
      await host[Symbol.asyncDispose]();
      host = openHost();
      return host;
    },
    kill: (container) => {
      assert.ok(container instanceof ProcessContainer);
      process.kill(container.process.pid, "SIGKILL");
    },
    hasLeft: (instanceId) =>
      Promise.resolve(
        readdirSync(instancesDirectory).some((name) => name === instanceId || name.startsWith(`${instanceId}-`)),
      ),
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      await fixture[Symbol.asyncDispose]();
    },
  };
});

test("a process that a run started, but was killed before recording, is ended by the next run", async () => {
  await using fixture = await openWorld();
  const { directory, store, unpacker } = fixture;
  const instancesDirectory = join(directory, "i");
  const outputDirectory = join(instancesDirectory, "i-1", "output");
  const socket = join(directory, "s", "i-1.sock");
  await mkdir(outputDirectory, { recursive: true });
  await mkdir(dirname(socket));
  writeFileSync(socket, "");
  const command = { command: "/bin/sleep", args: ["1000"], env: {}, cwd: "/" };
  const left = await startDetached({ ...command, outputDirectory, onLine: () => {}, clock: systemClock });
  left.release();
  using _failed = { [Symbol.dispose]: () => void signalGroup(left.pid, 9) };
  await using host = new ProcessHost({
    commandFor: () => assert.fail("nothing is started"),
    socketsDirectory: join(directory, "s"),
    instancesDirectory,
    store,
    unpacker,
    clock: systemClock,
    logger: silentLogger,
  });
  await host.resume([]);
  assert.equal(readProcessStart(left.pid), null);
  assert.deepEqual([outputDirectory, socket].map(existsSync), [false, false]);
});

test("a container of the previous run that has other settings is not adopted, and the log has the reason", async () => {
  await using world = await openWorld();
  const { directory, store, unpacker } = world;
  const instancesDirectory = join(directory, "i");
  const node = nodeWith().id;
  await mkdir(join(instancesDirectory, "i-1"), { recursive: true });
  await writeContainerFile(join(instancesDirectory, "i-1"), {
    owner: null,
    node,
    modelDataUrl: null,
    specDigest: "of other settings",
    process: { pid: process.pid, startTicks: 0, bootId: readBootId(), socketPath: join(directory, "s", "i-1.sock") },
  });
  const logged: unknown[] = [];
  await using host = new ProcessHost({
    commandFor: () => assert.fail("nothing is started"),
    socketsDirectory: join(directory, "s"),
    instancesDirectory,
    store,
    unpacker,
    clock: systemClock,
    logger: { ...silentLogger, info: (message, fields) => void logged.push([message, fields]) },
  });
  const spec: ContainerSpec = {
    title: "endpoint/variant/i-1",
    concurrencyMax: null,
    runtime: "tritonserver",
    models: { kind: "one", container: {}, bringMsMax: testTimeoutMs },
    environment: {},
    modelMemoryBytes: 2 ** 29,
    output: () => {},
  };
  const budget = { vcpuCount: 1, memoryBytes: 2 ** 30 };
  const [slot] = host.open({ instanceId: "i-1", node, owner: null, budget, containers: [spec] }).slots;
  assert.equal(await slot?.adopt(never), null);
  assert.deepEqual(logged, [
    [
      "a container of the previous run is replaced, not adopted: its settings differ, for example AWS_ENDPOINT_URL if the platform has another port",
      { container: "i-1" },
    ],
  ]);
});

async function openTrees() {
  const fixture = await openWorld();
  const { directory, store, unpacker } = fixture;
  const models = join(directory, "models");
  const descriptions = join(directory, "trees");
  await mkdir(models);
  const modelDataUrl = `s3://${bucket}/`;
  const open = () => new DirectoryTrees({ models, descriptions, modelDataUrl, store, unpacker, logger: silentLogger });
  return {
    trees: open(),
    descriptions,
    put: async (target: string, fileBytes: number): Promise<ModelArchive> => {
      const { etag, archiveBytes } = await fixture.put(target, "model.bin", fileBytes);
      return { id: containerModelId(target, etag), target, etag, archiveBytes };
    },
    holds: (id: string) => Promise.resolve(existsSync(join(models, id, "model", "model.bin"))),
    damage: (id: string) => Promise.resolve(appendFileSync(join(models, id, "model", "model.bin"), "more")),
    reopen: () => Promise.resolve(open()),
    [Symbol.asyncDispose]: () => fixture[Symbol.asyncDispose](),
  };
}

modelTreesContract("directory trees", openTrees);

test("model trees of a previous run are listed in the order in which they were unpacked", async () => {
  await using subject = await openTrees();
  for (const [index, target] of ["b", "a", "c"].entries()) {
    const model = await subject.put(target, 10);
    assert.ok((await subject.trees.unpack(model, { signal: never, onProgress: () => {} })) !== null);
    utimesSync(join(subject.descriptions, `${model.id}.json`), index, index);
  }
  const kept = await (await subject.reopen()).adopt();
  assert.deepEqual(
    kept.map(({ target }) => target),
    ["b", "a", "c"],
  );
});
