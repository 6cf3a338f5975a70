import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { InferenceError } from "@galatea/base";
import { releaseResponse, type InferenceResponse } from "../../inference/index.ts";
import { readProcessStart } from "@galatea/base/processes";
import {
  infer,
  echo,
  executed,
  floats,
  floatsOf,
  model,
  only,
  openFixture,
  pidOf,
  request,
  until,
  type PythonFixture,
} from "./python-fixture.ts";

let fixture: PythonFixture;

before(async () => {
  fixture = await openFixture({ hangReportMs: 150 });
});

after(() => fixture[Symbol.asyncDispose]());

test("a crash fails only the execution it happened in, with the cause", async () => {
  const body = `import os, ctypes, sys\nvalue = requests[0].inputs()[0].as_numpy()[0]
if value == 1: os._exit(3)
if value == 2: ctypes.string_at(0)
if value == 3:
    print("last words", file=sys.stderr)
    os.kill(os.getpid(), 9)
${echo}`;
  await using loaded = await fixture.load("crashes", model(body));
  assert.deepEqual(floatsOf((await infer(loaded, [floats("IN", [0])])).outputs[0]!), [0]);
  const large = Array.from({ length: 8192 }, (_, index) => index + 5);
  const values = [[6], [3], [7], large];
  const executions = values.map((value) => executed(only(loaded), [request([floats("IN", value)])]));
  const outcomes = (await Promise.all(executions)).map((execution) => execution.outcomes[0]!);
  assert.match(
    (outcomes[1] as InferenceError).message,
    /^Stub process 'crashes_0' is not healthy\. \(signal SIGKILL; last output:\nlast words\)$/,
  );
  for (const index of [0, 2, 3]) {
    const response = outcomes[index] as InferenceResponse;
    assert.deepEqual(floatsOf(response.outputs[0]!), values[index]);
    releaseResponse(response);
  }
  assert.deepEqual(
    fixture.health.slice(-2).map(({ ok }) => ok),
    [false, true],
  );
  assert.deepEqual(floatsOf((await infer(loaded, [floats("IN", [5])])).outputs[0]!), [5]);
  await assert.rejects(infer(loaded, [floats("IN", [1])]), {
    message: "Stub process 'crashes_0' is not healthy. (exit code 3)",
  });
  // After the second consecutive failure, the restart is delayed, and a request in the meantime waits.
  assert.deepEqual(floatsOf((await infer(loaded, [floats("IN", [0])])).outputs[0]!), [0]);
  await assert.rejects(infer(loaded, [floats("IN", [2])]), {
    message: /\(signal SIGSEGV; last output:\n.*Segmentation fault/s,
  });
  assert.equal(fixture.arena.usedBytes, 0);
});

test("a cancelled request behind a long execution is not executed", async () => {
  const body = `import time\nvalue = requests[0].inputs()[0].as_numpy()\nprint("executes", value[0], value.size, flush=True)
if value[0] == 9: time.sleep(0.3)\n${echo}`;
  await using loaded = await fixture.load("recalled", model(body));
  const large = Array.from({ length: 8192 }, () => 3);
  const batches = [[9], [2], large, [4]].map((values) => [request([floats("IN", values)])]);
  const executions = batches.map((batch) => only(loaded).execute(batch));
  for (const input of [...batches[1]!, ...batches[2]!]) only(loaded).abandonRequest(input);
  const outcomes = (await Promise.all(executions)).map(({ outcomes: [outcome] }) => outcome!);
  for (const [index, value] of [
    [0, 9],
    [3, 4],
  ] as const) {
    const response = outcomes[index] as InferenceResponse;
    assert.deepEqual(floatsOf(response.outputs[0]!), [value]);
    releaseResponse(response);
  }
  for (const index of [1, 2]) assert.match((outcomes[index] as InferenceError).message, /message: cancelled$/);
  await until(() => fixture.log.includes("printed: executes 4.0 1"));
  assert.deepEqual(
    fixture.log.filter((line) => /executes [234]\.0/.test(line)),
    ["printed: executes 4.0 1"],
  );
  assert.equal(fixture.arena.usedBytes, 0);
});

test("an executing model can see which of its requests were cancelled, on any thread", async () => {
  const body = `import threading, time
def wait(request, deadline=time.monotonic() + 30):
    while not request.is_cancelled() and time.monotonic() < deadline: time.sleep(0.001)
if getattr(self, "ended", None) is not None: self.ended = [self.ended[0].is_cancelled()]
print("executes", flush=True)
if len(requests) > 1:
    wait(requests[1])
    thread = threading.Thread(target=wait, args=(requests[2],))
    thread.start(); thread.join()
    self.ended = [requests[0]]
return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([request.is_cancelled()], np.float32))]) for request in requests]`;
  await using loaded = await fixture.load("asks", model(body));
  const batch = [1, 2, 3].map((value) => request([floats("IN", [value])]));
  const running = only(loaded).execute(batch);
  const lag = [
    request([
      floats(
        "IN",
        Array.from({ length: 8192 }, () => 3),
      ),
    ]),
    request([floats("IN", [4])]),
  ];
  const waiting = lag.map((one) => only(loaded).execute([one]));
  await until(() => fixture.log.includes("printed: executes"));
  only(loaded).abandonRequest(batch[1]!);
  only(loaded).abandonRequest(lag[0]!);
  only(loaded).abandonRequest(batch[2]!);
  const outcomes = (await Promise.all([running, ...waiting])).flatMap((execution) => execution.outcomes);
  assert.match((outcomes[3] as InferenceError).message, /message: cancelled$/);
  for (const [index, cancelled] of [0, 1, 1, null, 0].entries()) {
    if (cancelled === null) continue;
    const response = outcomes[index] as InferenceResponse;
    assert.deepEqual(floatsOf(response.outputs[0]!), [cancelled]);
    releaseResponse(response);
  }
  assert.equal(fixture.arena.usedBytes, 0);
});

test("a hanging worker is reported with its Python stack, and terminated only if configured", async () => {
  const body = `import time\nif requests[0].inputs()[0].as_numpy()[0]: time.sleep(1000)\n${echo}`;
  await using killing = await openFixture({ hangReportMs: 30, hangKillMs: 2000 });
  await using loaded = await killing.load("hangs", model(body));
  await assert.rejects(infer(loaded, [floats("IN", [1])]), {
    message:
      /^Stub process 'hangs_0' is not healthy\. \(signal SIGKILL, ended because of: an execution took more than 2000 ms; last output:.*model\.py", line 6 in execute/s,
  });
  assert.ok(killing.log.some((line) => /warning: executing for .* the Python stack of the worker follows/.test(line)));
});

test("an execution over its call's limit prints its stack and terminates its worker; the next one is executed", async () => {
  const body = `import time\nif requests[0].inputs()[0].as_numpy()[0]: time.sleep(1000)\n${echo}`;
  await using separate = await openFixture({ hangReportMs: 60_000 });
  await using loaded = await separate.load("limited", model(body));
  const execute = (value: number, executionMsMax: number | null) =>
    only(loaded).execute([request([floats("IN", [value])], { executionMsMax })]);
  const unlimited = await execute(0, null);
  releaseResponse(unlimited.outcomes[0] as InferenceResponse);
  const startedMs = performance.now();
  const { outcomes } = await execute(1, 3000);
  assert.match(
    (outcomes[0] as InferenceError).message,
    /^Stub process 'limited_0' is not healthy\. \(signal SIGKILL, ended because of: an execution took more than 3000 ms; last output:.*model\.py", line 6 in execute/s,
  );
  assert.ok(performance.now() - startedMs >= 3000);
  assert.ok(
    separate.log.some((line) => /warning: executing for \d+\.\d s; the Python stack of the worker follows/.test(line)),
  );
  assert.deepEqual(floatsOf((await infer(loaded, [floats("IN", [0])])).outputs[0]!), [0]);
  assert.equal(separate.arena.usedBytes, 0);
});

test("an execution sent to a dead worker runs in its successor, whether the death was noticed or not", async () => {
  const body = `import subprocess\nsubprocess.Popen(["sleep", "60"], start_new_session=True)\n${echo}`;
  await using separate = await openFixture();
  await using loaded = await separate.load("outlived", model(body));
  const respond = async (value: number) => floatsOf((await infer(loaded, [floats("IN", [value])])).outputs[0]!);
  assert.deepEqual(await respond(1), [1]);
  const first = pidOf(loaded);
  process.kill(first, "SIGKILL");
  // The busy loop does not yield to the event loop, so the server cannot have detected the end yet.
  while (!isDead(first));
  assert.deepEqual(await Promise.all([respond(2), respond(3)]), [[2], [3]]);
  await until(() => separate.health.at(-1)?.ok === true);
  const second = pidOf(loaded);
  process.kill(second, "SIGKILL");
  await until(() => readProcessStart(second) === null);
  // The server waits a limited time for the last output, because the child that the model started keeps the pipe open.
  assert.deepEqual(await respond(4), [4]);
});

/**
 * Returns whether the process has ended and closed its files, whether or not its parent has reaped it. The main thread alone can be a
 * zombie while another thread still has the socket open.
 */
function isDead(pid: number): boolean {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    return tasks.every((task) =>
      / [ZX] /.test(readFileSync(`/proc/${pid}/task/${task}/stat`, "latin1").replace(/.*\)/s, "")),
    );
  } catch {
    // The process or a thread has ended. If only a thread has, the caller repeats the check.
    return !existsSync(`/proc/${pid}`);
  }
}

test("workers outlive a killed zygote, and the next load uses a new zygote", async () => {
  await using separate = await openFixture();
  await using loaded = await separate.load("orphan", model(echo));
  const zygotePid = await zygoteOf(pidOf(loaded));
  process.kill(zygotePid, "SIGKILL");
  await until(() => readProcessStart(zygotePid) === null);
  assert.deepEqual(floatsOf((await infer(loaded, [floats("IN", [1])])).outputs[0]!), [1]);
  process.kill(pidOf(loaded), "SIGKILL");
  await until(() => separate.health.at(-1)?.ok === true);
  assert.deepEqual(floatsOf((await infer(loaded, [floats("IN", [2])])).outputs[0]!), [2]);
});

test("a zygote killed while it forks a worker is replaced, and the new one forks the worker", async () => {
  await using separate = await openFixture();
  await using loaded = await separate.load("first", model(echo));
  const zygotePid = await zygoteOf(pidOf(loaded));
  process.kill(zygotePid, "SIGSTOP");
  const before = readdirSync("/proc/self/fd").length;
  const loading = separate.load("second", model(echo));
  // A fork in progress has a socket and two pipes open.
  await until(() => readdirSync("/proc/self/fd").length >= before + 3);
  process.kill(zygotePid, "SIGKILL");
  await using second = await loading;
  assert.deepEqual(floatsOf((await infer(second, [floats("IN", [2])])).outputs[0]!), [2]);
});

test("a list of processes shows a worker's model, by its whole path and by the process's name", async () => {
  await using separate = await openFixture();
  await using loaded = await separate.load("shown", model(echo));
  const read = (name: string) => readFileSync(`/proc/${pidOf(loaded)}/${name}`, "utf8");
  assert.equal(read("comm"), "shown_0\n");
  const shown = read("cmdline").replace(/\0+$/, "");
  const full = `shown_0 (model of ${join(separate.directory, "shown", "1")})`;
  assert.ok(shown.length > 40 && full.startsWith(shown), shown);
});

/** Returns the zygote of a worker: the youngest child of this process that runs the zygote's program and is older than the worker. */
async function zygoteOf(workerPid: number): Promise<number> {
  const { readFile } = await import("node:fs/promises");
  const pids: number[] = [];
  for (const entry of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const pid = Number(entry);
    const commandLine = await readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "");
    const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
    const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
    const group = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2]);
    if (commandLine.includes("galatea_zygote.py") && parent === process.pid && group === pid && pid < workerPid)
      pids.push(pid);
  }
  const workers = new Set([workerPid]);
  return pids.filter((pid) => !workers.has(pid)).sort((a, b) => b - a)[0]!;
}
