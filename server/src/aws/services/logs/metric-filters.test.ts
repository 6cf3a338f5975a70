import assert from "node:assert/strict";
import { test } from "node:test";
import { AwsError, silentLogger } from "../../../base/index.ts";
import type { StoreFollower } from "./log-store.ts";
import type { MetricFilterRecord } from "./metric-filter.ts";
import { MetricFilters } from "./metric-filters.ts";

const filter = (name: string, group = "g"): MetricFilterRecord => ({
  group,
  name,
  pattern: "x",
  createdMs: 0,
  metric: { namespace: "N", name, value: "2", defaultValue: null, unit: "None", dimensions: {} },
});

function world() {
  const kept = new Map<string, MetricFilterRecord>();
  const recorded: string[] = [];
  const disk = { isFull: false };
  let follower: StoreFollower | null = null;
  const put = async (record: MetricFilterRecord) => {
    if (disk.isFull) throw new Error("the disk is full");
    kept.set(`${record.group} ${record.name}`, record);
  };
  const store = {
    all: async () => [...kept.values()],
    put,
    delete: async (record: MetricFilterRecord) => void kept.delete(`${record.group} ${record.name}`),
  };
  const open = () =>
    MetricFilters.open({
      store,
      logs: {
        follow(given) {
          follower = given;
          return { [Symbol.dispose]: () => void (follower = null) };
        },
      },
      series: {
        record: (key, { value }, { timestampMs }) => void recorded.push(`${key.metricName} ${value} ${timestampMs}`),
      },
      logger: silentLogger,
    });
  const write = async (group: string, ...messages: readonly string[]) => {
    if (follower?.wants(group, "s") !== true) return;
    await follower.take(
      group,
      "s",
      messages.map((message) => ({ timestampMs: 7, message })),
    );
  };
  return { open, write, recorded, kept, disk };
}

test("filters are at work in the next life of the platform too; one that cannot be read any more is left out", async () => {
  const at = world();
  {
    using filters = await at.open();
    await filters.put(filter("a"));
    at.kept.set("g broken", { ...filter("broken"), pattern: "{ $.a" });
  }
  using filters = await at.open();
  await at.write("g", "x", "y");
  await at.write("other", "x");
  assert.deepEqual(at.recorded, ["a 2 7"]);
  assert.deepEqual(
    filters.list().map(({ name }) => name),
    ["a"],
  );
});

test("a filter that could not be kept is not at work, and one that is put again replaces itself", async () => {
  const at = world();
  using filters = await at.open();
  at.disk.isFull = true;
  await assert.rejects(filters.put(filter("a")), /the disk is full/);
  await at.write("g", "x");
  assert.deepEqual(at.recorded, []);
  at.disk.isFull = false;
  await filters.put(filter("a"));
  await filters.put({ ...filter("a"), metric: { ...filter("a").metric, value: "3" } });
  await at.write("g", "x");
  assert.deepEqual([at.recorded, filters.countOf("g")], [["a 3 7"], 1]);
});

test("filters are bounded for each group and in all", async () => {
  const at = world();
  using filters = await at.open();
  const isRefused = (error: unknown) => error instanceof AwsError && error.code === "LimitExceededException";
  for (let index = 0; index < 100; index++) await filters.put(filter(`f${index}`));
  await assert.rejects(filters.put(filter("more")), isRefused);
  await filters.put(filter("f7"));
  for (let index = 0; index < 900; index++) await filters.put(filter("f", `g${index}`));
  await assert.rejects(filters.put(filter("f", "one more")), isRefused);
  await filters.deleteOf("g");
  await filters.put(filter("f", "one more"));
});
