import assert from "node:assert/strict";
import { test } from "node:test";
import { AwsError, KeyedLock, silentLogger } from "@galatea/base";
import type { LogFollower } from "@galatea/hosting";
import type { MetricFilterRecord } from "./metric-filter.ts";
import { MetricFilters } from "./metric-filters.ts";

const filter = (name: string, group = "g"): MetricFilterRecord => ({
  group,
  name,
  pattern: "x",
  createdMs: 0,
  metric: { namespace: "N", name, value: "2", defaultValue: null, unit: "None", dimensions: {} },
});

function fixture() {
  const kept = new Map<string, MetricFilterRecord>();
  const recorded: string[] = [];
  const disk = { isFull: false };
  const groups = new Set(["g", "other", "one more", ...Array.from({ length: 900 }, (_, index) => `g${index}`)]);
  let follower: LogFollower | null = null;
  const write = () => {
    if (disk.isFull) throw new Error("the disk is full");
  };
  const put = async (key: string, record: MetricFilterRecord) => {
    write();
    kept.set(key, record);
  };
  const store = {
    all: async () => [...kept.values()],
    put,
    deleteAll: async (removed: readonly string[]) => {
      write();
      for (const key of removed) kept.delete(key);
    },
  };
  const open = () =>
    MetricFilters.open({
      store,
      groupLocks: new KeyedLock(),
      logs: {
        groupNames: async (prefix) => [...groups].filter((name) => name.startsWith(prefix)),
        retentionDays: async (group) => {
          if (!groups.has(group)) throw new AwsError("ResourceNotFoundException", "no such group");
          return null;
        },
        follow(input) {
          follower = input;
          return { [Symbol.dispose]: () => void (follower = null) };
        },
      },
      series: {
        record: (key, { value }, { timestampMs }) => void recorded.push(`${key.metricName} ${value} ${timestampMs}`),
      },
      logger: silentLogger,
    });
  const report = async (group: string, ...messages: readonly string[]) => {
    if (follower?.wants(group, "s") !== true) return;
    await follower.receive(
      group,
      "s",
      messages.map((message) => ({ timestampMs: 7, message })),
    );
  };
  return { open, write: report, recorded, kept, disk, groups };
}

test("PutMetricFilter rejects a metric value outside of CloudWatch's range", async () => {
  const at = fixture();
  using filters = await at.open();
  const { metric } = filter("a");
  for (const other of [{ value: "1e300" }, { value: "-Infinity" }, { defaultValue: 1e300 }]) {
    const input = { ...filter("a"), metric: { ...metric, ...other } };
    await assert.rejects(filters.put(input), { code: "InvalidParameterException", message: /2\^360/ });
  }
});

test("metric filters work after a restart, except for stored filters that are no longer valid", async () => {
  const at = fixture();
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

test("a metric filter that could not be stored has no effect, and a second put of the same name replaces the first", async () => {
  const at = fixture();
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

test("the numbers of metric filters of a group and of all groups are limited", async () => {
  const at = fixture();
  using filters = await at.open();
  const isRefused = (error: unknown) => error instanceof AwsError && error.code === "LimitExceededException";
  for (let index = 0; index < 100; index++) await filters.put(filter(`f${index}`));
  await assert.rejects(filters.put(filter("more")), isRefused);
  await filters.put(filter("f7"));
  for (let index = 0; index < 900; index++) await filters.put(filter("f", `g${index}`));
  await assert.rejects(filters.put(filter("f", "one more")), isRefused);
  await filters.deleteGroup("g", async () => undefined);
  await filters.put(filter("f", "one more"));
});

test("metric filters that a full disk kept from being deleted with their group are deleted later, at the latest on restart", async () => {
  const at = fixture();
  using filters = await at.open();
  const [remove, create] = [async () => void at.groups.delete("g"), async () => void at.groups.add("g")];
  const stay = async () => {
    await filters.put(filter("a"));
    await filters.put(filter("b"));
    at.disk.isFull = true;
    await assert.rejects(filters.deleteGroup("g", remove), /the disk is full/);
    assert.deepEqual([at.groups.has("g"), filters.countOf("g")], [false, 2]);
  };
  await stay();
  await assert.rejects(filters.createGroup("g", create), /the disk is full/);
  at.disk.isFull = false;
  await filters.createGroup("g", create);
  assert.deepEqual([at.groups.has("g"), filters.countOf("g"), at.kept.size], [true, 0, 0]);
  await stay();
  at.disk.isFull = false;
  await filters.deleteGroup("g", () => assert.fail("the group was already deleted"));
  assert.deepEqual([filters.countOf("g"), at.kept.size], [0, 0]);
  await create();
  await stay();
  at.disk.isFull = false;
  await filters.put({ ...filter("c", "other") });
  using again = await at.open();
  assert.deepEqual([again.countOf("g"), again.countOf("other"), at.kept.size], [0, 1, 1]);
});

test("a failed creation or deletion of a group keeps its metric filters, and a missing group accepts none", async () => {
  const at = fixture();
  using filters = await at.open();
  await filters.put(filter("a"));
  const fails = async () => Promise.reject(new Error("it is there"));
  await assert.rejects(filters.createGroup("g", fails), /it is there/);
  await assert.rejects(filters.deleteGroup("g", fails), /it is there/);
  assert.equal(filters.countOf("g"), 1);
  await assert.rejects(filters.put(filter("a", "absent")), { code: "ResourceNotFoundException" });
});
