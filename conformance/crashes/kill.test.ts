/**
 * kill -9 of a platform during concurrent operations of all kinds. The seed or the kind of the commit chooses the
 * commit to the records at which the platform dies. Each next run has everything that was acknowledged, continues
 * operations in progress, and leaves nothing of the previous run behind.
 */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { seededRandom } from "../seeded-random.ts";
import { clientsOf, type Workload } from "./clients.ts";
import { ComponentWorkload, EndpointWorkload, MultiModelWorkload } from "./hosting-workloads.ts";
import { KilledPlatform, type KillPoint } from "./killed-platform.ts";
import { models, operate, prepare } from "./prepared-records.ts";
import { AsyncInferenceWorkload, ObjectWorkload, ScheduledActionWorkload, UploadWorkload } from "./stored-workloads.ts";

/** Returns the inode of the directory of each unpacked model: a model that is unpacked again has another one. */
async function unpackedModels(data: string): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  const instances = join(data, "instances");
  for (const instance of await readdir(instances)) {
    const trees = join(instances, instance, "ml", "models");
    for (const model of await readdir(trees).catch(() => [])) found.set(model, (await stat(join(trees, model))).ino);
  }
  return found;
}

/** Returns the temporary files of the platform, without those that Node keeps for all programs. */
async function temporaries(platform: KilledPlatform): Promise<readonly string[]> {
  return (await readdir(platform.temporary)).filter((name) => name !== "node-compile-cache");
}

/** Returns a kill point for every kind of document that has transitions, and some at any commit, in random order. */
function killPoints(random: () => number): readonly KillPoint[] {
  const upTo = (most: number) => 1 + Math.floor(random() * most);
  const of = (kind: string, most: number) =>
    Array.from({ length: most }, (_, index) => ({ kind, commitCount: index + 1 }));
  const steps = [...of("endpoint", 3), ...of("inference-component", 2), ...of("async-invocation", 1)];
  const anywhere = Array.from({ length: 2 }, () => ({ kind: null, commitCount: upTo(40) }));
  return [...steps, ...anywhere]
    .map((point) => [random(), point] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, point]) => point);
}

test("a platform that is repeatedly killed during operations keeps everything that it acknowledged, and leaves no files or processes behind", async (t) => {
  const seed = randomInt(2 ** 31);
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  await using platform = await KilledPlatform.open();
  let clients = clientsOf(platform.url);
  await prepare(clients);
  const queued = new AsyncInferenceWorkload("queued");
  const workloads: readonly Workload[] = [
    new EndpointWorkload("moving", ["first", "second"]),
    new ComponentWorkload("shared", "one"),
    new MultiModelWorkload("many", models),
    queued,
    new ObjectWorkload(random),
    new UploadWorkload(),
    new ScheduledActionWorkload("endpoint/queued/variant/v", random),
  ];
  for (const workload of workloads) await workload.check(clients);
  const unpacked = await unpackedModels(platform.data);
  assert.equal(unpacked.size, models.length);
  for (const point of killPoints(random)) {
    const dead = platform.killedAt(point);
    await Promise.all(workloads.map((workload) => operate(workload, clients, dead)));
    assert.equal((await temporaries(platform)).length, 1, "sockets of one run");
    await platform.start();
    clients = clientsOf(platform.url);
  }
  await Promise.all(workloads.map((workload) => workload.check(clients)));
  assert.deepEqual(await unpackedModels(platform.data), unpacked, "models are unpacked again");
  assert.ok(queued.count > 0);
  assert.doesNotMatch(
    platform.told,
    /damaged record skipped|a database is damaged|writes to a database are lost|unexpectedly/,
  );
  await platform.stop();
  assert.deepEqual(await temporaries(platform), []);
});
