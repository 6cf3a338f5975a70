/** Models that crash their process or never end: the effects on other models. Longer attacks are in conformance/faults. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { dividing, dividingAtLoad, endless, harmless } from "../../../../../conformance/faults/onnx-models.ts";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { ManualTimersClock } from "@galatea/base/core/manual-timers-fixture.ts";
import { InferenceError } from "@galatea/base";
import { type Arena, createArena } from "../../tensor/index.ts";
import {
  mebibyte,
  division,
  deadly,
  negation,
  write,
  load,
  run,
  negates,
  failureOf,
  isUnderWay,
  onlyRunner,
  open,
} from "../../../../../conformance/faults/onnx-fixture.ts";

test("a run that crashes its process fails with the model's name and the signal, and later runs of all models succeed", async () => {
  await using shop = await open();
  await using bad = await load(shop, "bad", dividing);
  await using good = await load(shop, "good", harmless);
  assert.equal(failureOf(await run(bad, deadly())), "INTERNAL: model 'bad' has crashed its process (signal SIGFPE)");
  await negates(good);
  assert.ok(!((await run(bad, division([6], [3]))) instanceof InferenceError));
  assert.equal(shop.arena.usedBytes, 0);
});

test("a file that crashes its loading process fails only its own load", async () => {
  await using shop = await open();
  await using good = await load(shop, "good", harmless);
  const message = "model 'deadly' has crashed its process (signal SIGFPE)";
  await assert.rejects(load(shop, "deadly", dividingAtLoad), { code: "INTERNAL", message });
  await negates(good);
});

test("files with one changed byte load, are rejected or crash their own process; none crashes the server or another model", async () => {
  await using shop = await open();
  await using good = await load(shop, "good", harmless);
  const source = await write(shop, "mutant", { ...endless, graphName: "mutant" });
  const path = join(source.versionDirectory, "model.onnx");
  const complete = readFileSync(path);
  for (let at = 0; at < complete.byteLength; at += 5) {
    const mutant = Buffer.from(complete);
    mutant[at] = (mutant[at]! * 7 + 101) & 255;
    await writeFile(path, mutant);
    try {
      await using _model = await shop.load(source, "");
    } catch (error) {
      assert.ok(error instanceof InferenceError, String(error));
    }
  }
  await negates(good);
});

test("endless runs of one tenant do not delay another tenant's runs", async () => {
  await using shop = await open({ slotCount: 2 });
  using arena: Arena = createArena({ capacityBytes: mebibyte });
  await using loops = await load(shop, "loops", endless);
  await using good = await load(shop, "good", harmless, arena);
  const requests = [0, 1, 2, 3].map(() => negation());
  const running = requests.map((each, instance) => loops.instances[instance]!.execute([each]));
  for (let responseCount = 0; responseCount < 50; responseCount += 1) await negates(good);
  // The clients disconnect. The library checks for termination at the next operator.
  for (const [instance, each] of requests.entries()) loops.instances[instance]!.abandonRequest(each);
  for (const { outcomes } of await Promise.all(running)) {
    assert.ok(outcomes[0] instanceof InferenceError && outcomes[0].code === "CANCELLED");
  }
  await negates(good);
  assert.equal(shop.arena.usedBytes, 0);
});

test("a run over its time limit is terminated, and its process continues", async () => {
  const deadlineMs = 50_000;
  // Loads, and runs of other models, have deadlines too.
  const clock = new ManualTimersClock(deadlineMs);
  await using shop = await open({ deadlineMs, clock });
  await using good = await load(shop, "good", harmless);
  await using loops = await load(shop, "loops", endless);
  const pid = await onlyRunner();
  const late = run(loops, negation());
  await eventually(() => clock.pendingTimerCount > 0);
  await isUnderWay(pid);
  clock.fireTimers();
  assert.equal(failureOf(await late), "INTERNAL: the run of model 'loops' did not end within 50000 ms and was ended");
  await negates(good);
  assert.equal(await onlyRunner(), pid);
});

test("a load sent to a process that was just killed is not blamed, and succeeds in the next process", async () => {
  await using shop = await open();
  await using good = await load(shop, "good", harmless);
  for (let round = 0; round < 5; round += 1) {
    const pid = await onlyRunner();
    const source = await write(shop, `later${round}`, { ...harmless, graphName: `later ${round}` });
    // The load below starts before this process can detect that the runner was killed.
    process.kill(pid, "SIGKILL");
    await using _later = await shop.load(source, "");
    await negates(good);
  }
});
