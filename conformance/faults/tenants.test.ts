/**
 * A hostile tenant of a real multi-model endpoint. Anything that it can access is listed in `supported.md`; everything
 * else is a defect.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { basename, dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { faultyRequest } from "./http-client.ts";
import { hostileArchive } from "./hostile-model.ts";
import { bucket, createEndpoint, endpointIs, invoke, Platform, prefix, errorOfInvocation } from "./platform.ts";
import { descendantsOf, processesMarked } from "./processes.ts";
import { until } from "./until.ts";

const name = "tenants";
const isRoot = process.getuid?.() === 0;
const memoryBytes = 512 * 2 ** 20;
const scratchBytes = 32 * 2 ** 20;
const supported = fileURLToPath(new URL("../sagemaker/supported.md", import.meta.url));
const weights = randomBytes(200_000);
const archive = hostileArchive(weights);
const sumOf = (bytes: Uint8Array) => String(bytes.reduce((sum, byte) => sum + byte, 0));

/** Not even a zombie of the process remains. */
const isAlive = (pid: number) => existsSync(`/proc/${pid}`);

let platform: Platform;
const put = (key: string, body: Uint8Array) =>
  platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: prefix + key, Body: body }));
const call = (target: string, does: string) => invoke(platform, name, target, faultyRequest(does));
async function textOf(target: string, does: string): Promise<string> {
  const { outputs } = JSON.parse(await call(target, does)) as { outputs: { name: string; data: string[] }[] };
  return outputs.find((output) => output.name === "TEXT")?.data[0] ?? "";
}

before(async () => {
  platform = await Platform.open(undefined, {
    flags: [`--worker-scratch-bytes=${scratchBytes}`, "--worker-processes=256", `--worker-memory-bytes=${memoryBytes}`],
  });
  for (const key of ["victim", "hostile", "leaving", "greedy"]) await put(`${key}.tar.gz`, archive);
  await createEndpoint(platform, { name, environment: { GALATEA_MODEL_MEMORY_BYTES: String(memoryBytes) } });
  await endpointIs(platform, name, "InService");
});
after(async () => {
  await platform[Symbol.asyncDispose]();
});

/** The attempts that succeed according to the table in `supported.md`. */
function allowed(): string[] {
  const rows = readFileSync(supported, "utf8").matchAll(/^\| a tenant may: (.+?) \| (.+?) \| .*\|$/gm);
  return [...rows].flatMap(([, what = "", where = ""]) => (where === "always" || !isRoot ? [what] : [])).sort();
}

async function targets(): Promise<Record<string, unknown>> {
  const victim = Number(await textOf("victim.tar.gz", "pid"));
  const own = Number(await textOf("hostile.tar.gz", "pid"));
  const { data, meeting } = platform.workspace;
  const at = (...names: string[]) => join(data, ...names);
  const files = (directory: string) =>
    readdirSync(directory, { recursive: true, withFileTypes: true }).flatMap((entry) =>
      entry.isFile() || entry.isDirectory() ? [join(entry.parentPath, entry.name)] : [],
    );
  const models = files(at("instances")).filter((path) => path.endsWith("/1/model.py"));
  const ownModel = await textOf("hostile.tar.gz", "where");
  const instances = files(at("instances"));
  const sockets = [...new Set(readFileSync("/proc/net/unix", "utf8").match(/\S*\/galatea-\S+\.sock/g) ?? [])];
  assert.notEqual(sockets.length, 0);
  const others = descendantsOf(platform.pid).map(({ pid }) => pid);
  return {
    "model.py": models.filter((path) => path !== ownModel),
    archives: instances.filter((path) => path.endsWith("/models") || path.endsWith("/content")),
    records: files(at("records")),
    keys: files(at("clients")),
    objects: files(at("objects")),
    logs: [...files(at("logs")), at("logs")],
    instances: [at("instances"), data],
    secrets: readdirSync(data)
      .map((entry) => at(entry))
      .filter((path) => path !== at("python")),
    home: [platform.workspace.directory, process.env["HOME"] ?? "/root"],
    product: files(fileURLToPath(new URL("../../packages/server/python", import.meta.url))),
    pids: [platform.pid, process.pid, victim, ...others.filter((pid) => pid !== own && pid !== victim)],
    sockets,
    groups: ["memory", "pids", "unified"].map((each) => `/sys/fs/cgroup/${each}/cgroup.procs`),
    scratchBytes,
    foreign: [
      ...others.map(String),
      ...models.filter((path) => path !== ownModel).map((path) => basename(dirname(modelRoot(path)))),
      "records",
      "objects",
      "clients",
      "logs",
      "content",
      ".ssh",
      ".bashrc",
    ],
    meeting,
  };
}
const modelRoot = (path: string) => dirname(dirname(dirname(path)));

test("a tenant reaches only the documented resources", async () => {
  const service = createServer((socket) => socket.end()).listen(0, "127.0.0.1");
  await new Promise((resolve) => service.once("listening", resolve));
  try {
    assert.equal(await textOf("victim.tar.gz", "offer"), "offered");
    const requested = {
      ...(await targets()),
      service: (service.address() as AddressInfo).port,
      port: Number(new URL(platform.url).port),
    };
    const outcomes = JSON.parse(await textOf("hostile.tar.gz", `attempts ${JSON.stringify(requested)}`)) as Record<
      string,
      string
    >;
    assert.ok(Object.keys(outcomes).length > 60);
    const reached = Object.entries(outcomes).filter(([, outcome]) => outcome.startsWith("reached"));
    assert.deepEqual(
      reached.map(([what]) => what).sort(),
      allowed(),
      JSON.stringify(Object.fromEntries(reached), null, 1),
    );
  } finally {
    service.close();
  }
});

test("after these attempts, the other tenant's responses and the shared weights are unchanged", async () => {
  assert.equal(await textOf("victim.tar.gz", "weights"), sumOf(weights));
  await put("later.tar.gz", archive);
  assert.equal(await textOf("later.tar.gz", "weights"), sumOf(weights));
});

test("a process that a tenant leaves behind without its markers ends with the tenant's worker", async () => {
  const left = Number(await textOf("leaving.tar.gz", `leave_behind`));
  assert.ok(isAlive(left));
  process.kill(Number(await textOf("leaving.tar.gz", "pid")), "SIGKILL");
  await until("the process has ended", () => !isAlive(left));
});

test("a process that a tenant leaves behind ends with the server as well", async () => {
  const left = Number(await textOf("leaving.tar.gz", `leave_behind`));
  const [server = 0] = platform.servers();
  process.kill(server, "SIGKILL");
  await until("the process has ended", () => !isAlive(left));
  await until("the endpoint responds again", () => call("victim.tar.gz", "pid").catch(() => null));
});

test("a tenant that allocates memory endlessly is ended, and no other tenant", async () => {
  const victim = await textOf("victim.tar.gz", "pid");
  const [server] = platform.servers();
  const error = await errorOfInvocation(call("greedy.tar.gz", `take_memory ${8 * 2 ** 30}`));
  assert.match(error.message, /signal SIGKILL|Unable to allocate|MemoryError/);
  // Without root, memory is limited for each process, and the other model may have been evicted within the instance's
  // budget.
  if (isRoot) assert.equal(await textOf("victim.tar.gz", "pid"), victim);
  else assert.match(await textOf("victim.tar.gz", "pid"), /^\d+$/);
  assert.deepEqual(platform.servers(), [server]);
  assert.ok(processesMarked(platform.workspace.mark).length > 0);
});
