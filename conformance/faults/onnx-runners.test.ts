/** Runner processes that ONNX models or kills end, block or fill: effects on their neighbours. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { dividing, endless, expanding, harmless, slow, writeModel } from "./onnx-models.ts";
import { InferenceError } from "@galatea/base";
import { createArena } from "@galatea/server/tensor";
import {
  mebibyte,
  division,
  deadly,
  negation,
  product,
  write,
  load,
  run,
  negates,
  failureOf,
  runners,
  onlyRunner,
  until,
  privateBytes,
  isUnderWay,
  open,
} from "./onnx-fixture.ts";
import { floats, request } from "../../packages/server/src/backends/onnxruntime/onnxruntime-fixtures.ts";

test("other models' runs in a process that crashed are repeated, and only the run that crashed it fails", async () => {
  await using shop = await open();
  await using bad = await load(shop, "bad", dividing);
  await using busy = await load(shop, "busy", slow(200));
  const pid = await onlyRunner();
  const running = run(busy, product());
  await isUnderWay(pid);
  assert.match(failureOf(await run(bad, deadly())), /model 'bad' has crashed its process \(signal SIGFPE\)/);
  assert.ok(!((await running) instanceof InferenceError));
  assert.equal(shop.arena.usedBytes, 0);
});

test("a model that crashed two processes runs in its own process, apart from other models, and after another crash not at all", async () => {
  await using shop = await open();
  await using bad = await load(shop, "bad", dividing);
  await using good = await load(shop, "good", harmless);
  for (let crash = 0; crash < 2; crash += 1) failureOf(await run(bad, deadly()));
  await negates(good);
  const shared = await onlyRunner();
  for (let crash = 0; crash < 2; crash += 1) {
    assert.match(failureOf(await run(bad, deadly())), /has crashed its process/);
    assert.equal(await onlyRunner(), shared);
  }
  const refusal = "UNAVAILABLE: model 'bad' is not run: it has crashed its process 4 times. ";
  const refused = failureOf(await run(bad, division([1], [1])));
  assert.ok(refused.startsWith(refusal), refused);
  await negates(good);
  assert.equal(await onlyRunner(), shared);
  // Another file has other content.
  await using better = await load(shop, "better", { ...dividing, graphName: "better" });
  assert.ok(!((await run(better, division([1], [1]))) instanceof InferenceError));
});

test("kill -9 of the process at any moment loses no block and no model", async () => {
  await using shop = await open();
  await using busy = await load(shop, "busy", slow(20));
  await using good = await load(shop, "good", harmless);
  for (let round = 0; round < 3; round += 1) {
    const pid = await onlyRunner();
    const under = [0, 1, 2, 3].map((instance) => run(busy, product(), instance));
    await new Promise((resolve) => setTimeout(resolve, round * 30));
    process.kill(pid, "SIGKILL");
    for (const outcome of await Promise.all(under)) {
      if (outcome instanceof InferenceError) {
        assert.match(outcome.message, /model 'busy' (has crashed|is not run: it has crashed) its process/);
      }
    }
    await negates(good);
    assert.equal(shop.arena.usedBytes, 0);
    await until("the isolated processes have ended or are idle", async () => !(await runners()).includes(pid));
    await until("one process is running", async () => (await runners()).length >= 1);
    // Isolated runners continue for a while; the next round does not kill them.
    const apart = (await runners()).slice(1);
    for (const one of apart) process.kill(one, "SIGKILL");
    await until("only the shared process is running", async () => (await runners()).length === 1);
  }
});

test("a client may disconnect at any moment of a run: its run ends, and the thread's next run does not", async () => {
  await using shop = await open({ slotCount: 1 });
  await using loops = await load(shop, "loops", endless);
  await using good = await load(shop, "good", harmless);
  for (let round = 0; round < 100; round += 1) {
    const requested = negation();
    const running = loops.instances[0]!.execute([requested]);
    for (let tick = 0; tick < round % 10; tick += 1) await new Promise((resolve) => setImmediate(resolve));
    loops.instances[0]!.abandonRequest(requested);
    const { outcomes } = await running;
    assert.ok(outcomes[0] instanceof InferenceError && outcomes[0].code === "CANCELLED");
    await negates(good);
  }
});

test("a process that hangs is ended with the run that timed out; its other runs are repeated", async () => {
  await using shop = await open({ deadlineMs: 2000, terminateMs: 100 });
  await using busy = await load(shop, "busy", endless);
  await using good = await load(shop, "good", harmless);
  const pid = await onlyRunner();
  const running = run(busy, negation());
  await isUnderWay(pid);
  process.kill(pid, "SIGSTOP");
  assert.match(failureOf(await running), /did not end within 2000 ms/);
  await negates(good);
  assert.notEqual(await onlyRunner(), pid);
  assert.equal(shop.arena.usedBytes, 0);
});

test("memory that a large run leaves in the library's pool is released", async () => {
  await using shop = await open({ memoryReleaseMs: 10 });
  await using large = await load(shop, "large", expanding(100 * mebibyte));
  await using good = await load(shop, "good", harmless);
  await negates(good);
  const pid = await onlyRunner();
  const before = privateBytes(pid);
  assert.ok(!((await run(large, request([floats("x", [1], [1])]))) instanceof InferenceError));
  await until("less than 64 of 400 MiB are still allocated", () => privateBytes(pid) - before < 64 * mebibyte);
});

test("an unloaded model's session and arena are freed in the process, and hundreds of loads leave no descriptor", async () => {
  await using shop = await open();
  await using _good = await load(shop, "good", harmless);
  const source = await write(shop, "again", { ...harmless, graphName: "again" });
  const pid = await onlyRunner();
  const descriptors = () => [process.pid, pid].map((each) => readdirSync(`/proc/${each}/fd`).length);
  const cycle = async () => {
    using arena = createArena({ capacityBytes: mebibyte });
    await using model = await shop.load(source, "", arena);
    await negates(model);
  };
  await cycle();
  const before = descriptors();
  for (let count = 0; count < 300; count += 1) await cycle();
  await until("there are as many descriptors as before", () => descriptors().join() === before.join());
  const arenas = readFileSync(`/proc/${pid}/maps`, "latin1").match(/memfd:galatea-arena/g) ?? [];
  assert.ok(arenas.length <= 1, `${arenas.length} arenas mapped`);
});

for (const [what, change] of [
  ["changed", (path: string) => writeModel(path, { ...dividing })],
  ["removed", (path: string) => rm(path)],
] as const) {
  test(`a ${what} file is not used as the loaded model when its process is replaced`, async () => {
    await using shop = await open();
    const source = await write(shop, "changing", harmless);
    await using model = await shop.load(source, "");
    await negates(model);
    await change(join(source.versionDirectory, "model.onnx"));
    const pid = await onlyRunner();
    process.kill(pid, "SIGKILL");
    await until("the end of the runner is detected", () =>
      shop.logged.some((line) => line.includes("process has ended")),
    );
    const failure = failureOf(await run(model, negation()));
    assert.equal(failure, "UNAVAILABLE: the files of model 'changing' have changed since it was loaded: load it again");
  });
}

test("a run that had not started when its process died is not counted as a crash, however often that happens", async () => {
  await using shop = await open();
  await using good = await load(shop, "good", harmless);
  await negates(good);
  for (let death = 0; death < 6; death += 1) {
    await until("one process is running", async () => (await runners()).length === 1);
    const pid = await onlyRunner();
    // The runner does not read its sockets any more: requests are in its receive buffer when it dies.
    process.kill(pid, "SIGSTOP");
    const states = () =>
      readdirSync(`/proc/${pid}/task`).map(
        (thread) => readFileSync(`/proc/${pid}/task/${thread}/stat`, "latin1").split(") ")[1]![0],
      );
    await until("all its threads are stopped", () => states().every((state) => state === "T"));
    const running = negates(good);
    for (let tick = 0; tick < 20; tick += 1) await new Promise((resolve) => setImmediate(resolve));
    process.kill(pid, "SIGKILL");
    await running;
    assert.notEqual(await onlyRunner(), pid);
  }
  assert.equal(shop.arena.usedBytes, 0);
});
