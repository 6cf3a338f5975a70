import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { systemClock, type Clock } from "@galatea/base";
import { watchPings } from "./ping-watch.ts";

const root = await mkdtemp(join(tmpdir(), "pings-"));
after(() => rm(root, { recursive: true, force: true }));

test("onSilent is called when no ping arrives for the grace period, which restarts at the opening of the listeners and at each ping", async () => {
  let nowNs = 0;
  const timers: { readonly ms: number; readonly fire: () => void }[] = [];
  const clock: Clock = {
    ...systemClock,
    monotonicNs: () => nowNs,
    timer(ms, fire) {
      timers.push({ ms, fire });
      return { [Symbol.dispose]() {} };
    },
  };
  let silentCount = 0;
  using watch = watchPings(60, () => (silentCount += 1), clock);
  const look = async () => {
    timers.at(-1)?.fire();
    await new Promise((resolve) => setImmediate(resolve));
  };
  nowNs = 500e9;
  assert.deepEqual(timers, []);
  watch.opened();
  nowNs = 540e9;
  watch.pinged();
  nowNs = 560e9;
  await look();
  assert.deepEqual([silentCount, timers.map(({ ms }) => ms)], [0, [60_000, 40_000]]);
  nowNs = 600e9;
  await look();
  assert.equal(silentCount, 1);
});

test("a server with --end-without-pings-secs keeps running while its models load, and stops when pings stop", async () => {
  const repository = join(root, "models");
  await mkdir(join(repository, "one", "1"), { recursive: true });
  await writeFile(join(repository, "one", "config.pbtxt"), 'backend: "python" max_batch_size: 0');
  await writeFile(
    join(repository, "one", "1", "model.py"),
    "import time\nclass TritonPythonModel:\n  def initialize(self, args):\n    time.sleep(2)\n  def execute(self, requests):\n    return []\n",
  );
  const socketPath = join(root, "socket");
  const main = fileURLToPath(new URL("../../main.ts", import.meta.url));
  const flags = [`--model-repository=${repository}`, `--sagemaker-socket=${socketPath}`, "--end-without-pings-secs=1"];
  const closed = ["--allow-http=false", "--allow-grpc=false", "--allow-metrics=false"];
  const child = spawn(process.execPath, [main, "serve", ...flags, ...closed], { stdio: ["ignore", "ignore", "pipe"] });
  const printed = text(child.stderr);
  const exited = once(child, "exit");
  const ping = () =>
    new Promise<boolean>((resolve) => {
      const outgoing = request({ socketPath, path: "/ping", agent: false }, (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      });
      outgoing.on("error", () => resolve(false)).end();
    });
  while (child.exitCode === null && !(await ping())) await new Promise((resolve) => setTimeout(resolve, 10));
  const [code] = (await exited) as [number];
  assert.equal(code, 0);
  assert.match(await printed, /^[^\n]*no ping has arrived for 1 s: the platform has ended"\n$/);
});
