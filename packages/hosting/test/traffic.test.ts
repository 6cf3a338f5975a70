/**
 * Distribution of requests over variants and instances, with real processes and clients that send requests
 * continuously.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { owner } from "./hosting-fixture.ts";
import { TrafficFixture, until } from "./traffic-fixture.ts";

test("variants get requests by weight to within one, a TargetVariant gets its own requests, and metrics agree with the client", async () => {
  await using bench = await TrafficFixture.open();
  await bench.deploy("weighted", [
    { name: "a", InitialVariantWeight: 1 },
    { name: "b", InitialVariantWeight: 2.5 },
    { name: "c", InitialVariantWeight: 0 },
  ]);
  const counts = new Map<string, number>();
  for (let index = 0; index < 70; index += 1) {
    const { variant } = await bench.call("weighted", "x");
    counts.set(variant, (counts.get(variant) ?? 0) + 1);
  }
  assert.deepEqual(Object.fromEntries(counts), { a: 20, b: 50 });
  for (const named of ["a", "c", "c"]) {
    const { variant, container } = await bench.call("weighted", "x", named);
    assert.deepEqual([variant, container], [named, named]);
  }
  await assert.rejects(bench.call("weighted", "x", "d"), /Variant d not found for Request of endpoint weighted/);
  const sums = ["a", "b", "c"].map((variant) => bench.sums.get(`weighted ${variant} Invocations`));
  assert.deepEqual(sums, [21, 50, 2]);
});

test("a variant keeps its share of the rotation when the record changes and the weights do not", async () => {
  await using bench = await TrafficFixture.open();
  await bench.deploy("owed", [
    { name: "a", InitialVariantWeight: 9 },
    { name: "b", InitialVariantWeight: 1 },
  ]);
  const counts = new Map<string, number>();
  for (let round = 0; round < 10; round += 1) {
    for (let index = 0; index < 4; index += 1) {
      const { variant } = await bench.call("owed", "x");
      counts.set(variant, (counts.get(variant) ?? 0) + 1);
    }
    await bench.hosting.endpoints.resize("owed", [{ variantName: "a", weight: 9 }], owner);
    await bench.settled("owed");
  }
  assert.deepEqual(Object.fromEntries(counts), { a: 36, b: 4 });
  for (const weight of [Number.NaN, Infinity, 1e39]) {
    const resize = bench.hosting.endpoints.resize("owed", [{ variantName: "a", weight }], owner);
    await assert.rejects(resize, /The weight of variant "a" has to be a finite number from 0 to /);
  }
});

test("a request is rejected only when all instances are full", async () => {
  await using bench = await TrafficFixture.open(undefined, null, { limits: { requestsMax: 4 } });
  const variant = { name: "a", InitialInstanceCount: 3, RoutingConfig: { RoutingStrategy: "RANDOM" as const } };
  await bench.deploy("full", [variant]);
  const blocked = Array.from({ length: 12 }, () => bench.call("full", "hold"));
  await Promise.race([Promise.all(blocked), until("all requests are pending", () => bench.heldCount() === 12)]);
  await assert.rejects(bench.call("full", "x"), { code: "ServiceUnavailable", statusFallback: 503 });
  assert.equal(bench.sums.get("full a Invocation5XXErrors"), 1);
  assert.equal(bench.sums.get("full a InvocationModelErrors"), 0);
  bench.signal("SIGUSR2");
  assert.equal(new Set((await Promise.all(blocked)).map(({ instance }) => instance)).size, 3);
});

test("a killed instance fails only the requests that it had read: others go to another instance until it is replaced", async () => {
  await using bench = await TrafficFixture.open();
  await bench.deploy("killed", [{ name: "a", InitialInstanceCount: 2 }]);
  const clients = bench.clients("killed", 8);
  const { results: answers, failures } = clients.counts;
  let ownCount = 3;
  for (let round = 0; round < 3; round += 1) {
    const { instance, pid } = await bench.call("killed", "x");
    process.kill(pid, "SIGKILL");
    await until("its replacement responds", async () => {
      ownCount += 1;
      const answerer = await bench.call("killed", "x").catch((error: unknown) => {
        failures.set(`own ${ownCount}`, String(error));
        ownCount -= 1;
      });
      return answerer?.instance === instance && answerer.pid !== pid;
    });
  }
  await clients.end();
  // Only requests that a killed container had received fail. Requests that were not sent to it are retried.
  for (const error of failures.values())
    assert.match(error, /error \(503\) from primary with message ".*other side closed"/);
  assert.ok(failures.size <= 3 * 8, `${failures.size} failed`);
  const sum = (metric: string) => bench.sums.get(`killed a ${metric}`) ?? 0;
  assert.deepEqual([...answers.keys()], ["a a"]);
  assert.equal(sum("Invocations"), (answers.get("a a") ?? 0) + failures.size + ownCount);
  assert.equal(sum("Invocation5XXErrors"), failures.size);
});
