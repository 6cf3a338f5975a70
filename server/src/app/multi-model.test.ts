/** Many models on several instances: real processes that count their loads, and clients that ask all the time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ModelsBench } from "./models-fixture.ts";
import { until } from "./traffic-fixture.ts";

const targetsOf = (count: number) => Array.from({ length: count }, (_, index) => `m${index}.tar.gz`);
const sum = (counts: ReadonlyMap<string, number>) => [...counts.values()].reduce((all, each) => all + each, 0);

test(
  "each model is loaded on one instance, and moves without a failed request when instances are killed, come and go",
  { timeout: 120_000 },
  async () => {
    await using bench = await ModelsBench.open();
    const targets = targetsOf(40);
    for (const target of targets) await bench.put(target, target);
    await bench.deploy("many", 3);
    let asked = 0;
    const next = () => targets[asked++ % targets.length] ?? "";
    const round = async () => {
      const from = asked;
      await until("each model has been asked for", () => asked >= from + 2 * targets.length);
    };
    const clients = bench.clients("many", 4, next);
    await round();
    // With random routing it would be nearly three times as many.
    assert.equal(sum(bench.loads()), 40);
    const places = new Map<string, Set<string>>();
    for (const target of targets) {
      const { instance } = await bench.ask("many", target);
      places.set(instance, (places.get(instance) ?? new Set()).add(target));
    }
    assert.equal(places.size, 3);

    const { pid, instance } = await bench.ask("many", "m0.tar.gz");
    const heldCount = places.get(instance)?.size ?? 0;
    process.kill(pid, "SIGKILL");
    await until("its successor has the model again", async () => {
      const answer = await bench.ask("many", "m0.tar.gz");
      return answer.instance === instance && answer.pid !== pid;
    });
    await round();
    // Away from the killed instance, and back to it.
    const afterKill = sum(bench.loads());
    assert.ok(afterKill <= 40 + 2 * heldCount, `${afterKill} loads, of which 40 before; it held ${heldCount}`);

    await bench.resize("many", 1);
    await round();
    await bench.resize("many", 3);
    await until("models are on three instances again", async () => {
      const answers = await Promise.all(targets.map((target) => bench.ask("many", target)));
      return new Set(answers.map((answer) => answer.instance)).size === 3;
    });
    const { answers, failures } = await clients.end();
    const inKilled = failures.filter((text) =>
      /error \(503\) from primary with message ".*other side closed"/.test(text),
    );
    assert.deepEqual(
      failures.filter((text) => !inKilled.includes(text)),
      [],
    );
    assert.ok(inKilled.length <= 5 && answers > 160, `${inKilled.length} failed, ${answers} answered`);
  },
);
