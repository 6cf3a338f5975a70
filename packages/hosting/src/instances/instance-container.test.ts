import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { silentLogger, systemClock } from "@galatea/base";
import { InstanceContainer, instanceLimits } from "./instance-container.ts";
import type { ContainerSlot, HostedContainer } from "./model-host.ts";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-instance-"));
after(() => rmSync(root, { recursive: true, force: true }));

// A container that responds to pings. With `busy-ms`, it computes for that time and responds to nothing. With `hold`,
// it delays responses until SIGUSR2.
const program = join(root, "container.mjs");
writeFileSync(
  program,
  `import { createServer } from "node:http";
  const held = [];
  let isReleased = false;
  process.on("SIGUSR2", () => {
    isReleased = true;
    for (const response of held) response.end();
  });
  createServer((request, response) => {
    const untilMs = performance.now() + Number(request.headers["busy-ms"] ?? 0);
    while (performance.now() < untilMs);
    if (request.headers.hold === undefined || isReleased) response.end();
    else held.push(response);
  }).listen(process.argv[2]);`,
);

let socketCount = 0;

/** Runs containers as child processes. `pids` contains those that run now. */
class Host implements Pick<ContainerSlot, "adopt" | "start"> {
  readonly pids = new Set<number>();
  readonly #program: string;
  readonly #isOutOfMemory: boolean;

  constructor(runs = program, isOutOfMemory = false) {
    this.#program = runs;
    this.#isOutOfMemory = isOutOfMemory;
  }

  adopt(): Promise<null> {
    return Promise.resolve(null);
  }

  async start(): Promise<HostedContainer> {
    const socketPath = join(root, `s${(socketCount += 1)}`);
    const child = spawn(process.execPath, [this.#program, socketPath], { stdio: "ignore" });
    const pid = child.pid ?? 0;
    this.pids.add(pid);
    const ended = once(child, "close").then(([exitCode, signal]) => {
      this.pids.delete(pid);
      const isOutOfMemory = this.#isOutOfMemory;
      return { exitCode: exitCode as number | null, signal: signal as string | null, isOutOfMemory, lastLines: [] };
    });
    return {
      address: { kind: "socket", path: socketPath },
      ended,
      lastLines: () => [],
      usage: async () => null,
      workedNs: async () => await processorNs(pid),
      stop: async (graceMs) => {
        child.kill("SIGTERM");
        const timer = setTimeout(() => child.kill("SIGKILL"), graceMs);
        await ended;
        clearTimeout(timer);
      },
    };
  }
}

async function processorNs(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 1e7;
}

async function started(pingMsMax = 500) {
  const host = new Host();
  const limits = {
    ...instanceLimits,
    pingIntervalMs: 60,
    restartDelayMsMin: 1,
    container: { ...instanceLimits.container, pingMsMax },
  };
  let lostCount = 0;
  const instance = new InstanceContainer({
    id: "i-1",
    name: "primary",
    slot: host,
    limits,
    clock: systemClock,
    logger: silentLogger,
    prepare: async () => {},
    takeOver: async () => {},
    onLost: () => (lostCount += 1),
    onChanged: () => {},
  });
  await instance.start(AbortSignal.timeout(testTimeoutMs));
  const [pid = 0] = host.pids;
  return { host, instance, pid, lostCount: () => lostCount };
}

async function invoke(instance: InstanceContainer, headers: Record<string, string>): Promise<number> {
  const request = {
    path: "/invocations",
    headers,
    body: "",
    isStreamed: false,
    signal: AbortSignal.timeout(testTimeoutMs),
  };
  assert.ok(instance.client !== null);
  const { status, body } = await instance.client.invoke(request);
  await body.dump();
  return status;
}

test("a container that was stopped (SIGSTOP) is killed and replaced in bounded time", async () => {
  const { host, instance, pid, lostCount } = await started();
  await using _ = instance;
  const before = instance.client;
  assert.ok(before !== null);
  process.kill(pid, "SIGSTOP");
  await instance.successor(before, AbortSignal.timeout(testTimeoutMs));
  assert.ok(!host.pids.has(pid));
  assert.equal(host.pids.size, 1);
  assert.equal(lostCount(), 1);
  assert.equal(instance.lastFailure, "did not respond to 3 pings and used no CPU");
  assert.equal(await invoke(instance, {}), 200);
});

test("a container that computes without responding to pings is kept, and its response arrives", async () => {
  const { host, instance, pid, lostCount } = await started();
  await using _ = instance;
  assert.equal(await invoke(instance, { "busy-ms": "2500" }), 200);
  assert.deepEqual([...host.pids], [pid]);
  assert.equal(lostCount(), 0);
});

test("a container whose connections are all in use is still pinged", async () => {
  const { instance, pid } = await started(testTimeoutMs);
  await using _ = instance;
  const { client } = instance;
  assert.ok(client !== null);
  const waiting = Array.from({ length: instanceLimits.container.connectionsMax + 50 }, () =>
    invoke(instance, { hold: "1" }),
  );
  assert.equal(await client.ping(AbortSignal.timeout(testTimeoutMs)), true);
  process.kill(pid, "SIGUSR2");
  assert.ok((await Promise.all(waiting)).every((status) => status === 200));
});

/** Returns the error of a first start of the given program. */
async function failureOf(text: string, startMsMax: number, isOutOfMemory = false): Promise<string> {
  const path = join(root, `failing-${(socketCount += 1)}.mjs`);
  writeFileSync(path, text);
  await using container = new InstanceContainer({
    id: "i-1",
    name: "primary",
    slot: new Host(path, isOutOfMemory),
    limits: { ...instanceLimits, startMsMax },
    clock: systemClock,
    logger: silentLogger,
    prepare: async () => {},
    takeOver: async () => {},
    onLost: () => {},
    onChanged: () => {},
  });
  const error = await container.start(new AbortController().signal).catch((thrown: unknown) => thrown);
  return error instanceof Error ? error.message : "it started";
}

test("the failure of a container that never responds to pings names the setting that gives it more time", async () => {
  assert.equal(
    await failureOf("setInterval(() => {}, 1000);", 200),
    "no healthy /ping within 0.2 s; where its model takes longer to load, raise the variant's ContainerStartupHealthCheckTimeoutInSeconds",
  );
});

test("a killed container is reported as out of memory only if the kernel's OOM killer acted", async () => {
  const killsItself = 'process.kill(process.pid, "SIGKILL");';
  assert.equal(await failureOf(killsItself, 60_000), "the container was ended by SIGKILL");
  assert.equal(
    await failureOf(killsItself, 60_000, true),
    "the container was ended by SIGKILL: the kernel killed it for lack of memory",
  );
});
