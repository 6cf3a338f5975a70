/** The objects that a transform job reads, the names of their outputs, and the memory that they use. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteBudget } from "@galatea/base";
import { input, TransformFixture } from "./transforms-fixture.ts";

const prefix = (uri: string) => ({ TransformInput: input({}, uri) });

test("if two inputs have one output name, the one in the folder gets it, the other fails, and nothing is overwritten", async () => {
  await using bench = await TransformFixture.open();
  for (const key of ["in/data/one", "in/data/two", "in/dataone", "in/datathree"]) await bench.put(key, key);
  const { state } = await bench.run("beside", "echo", prefix("s3://bkt/in/data"));
  assert.equal(state.at, "Completed");
  assert.deepEqual(await bench.keys("out"), ["out/dataone.out", "out/datathree.out", "out/one.out", "out/two.out"]);
  await bench.put("in/data/dataone", "the twin");
  const twins = await bench.run("twins", "echo", prefix("s3://bkt/in/data"));
  assert.equal(
    twins.state.at === "Failed" && twins.state.reason,
    "ClientError: s3://bkt/in/dataone: its output s3://bkt/out/dataone.out is also the output of s3://bkt/in/data/dataone; " +
      'give an S3Uri that ends with "/", or a job for each of them (1 of 5 objects failed)',
  );
  assert.equal(await bench.get("out/dataone.out"), "the twin");
  assert.equal(await bench.get("out/datathree.out"), "in/datathree");
  assert.equal(await bench.get("out/one.out"), "in/data/one");
});

test("in a manifest two inputs with one output name conflict only if both are listed", async () => {
  await using bench = await TransformFixture.open();
  for (const key of ["in/data/datax", "in/datax"]) await bench.put(key, key);
  const source = { S3DataSource: { S3DataType: "ManifestFile", S3Uri: "s3://bkt/list.json" } };
  const manifest = (...names: string[]) =>
    bench.put("list.json", JSON.stringify([{ prefix: "s3://bkt/in/data" }, ...names]));
  await manifest("x", "/datax");
  const both = await bench.run("both", "echo", { TransformInput: { DataSource: source } });
  assert.match(
    both.state.at === "Failed" ? both.state.reason : "",
    /in\/datax: its output .* is also the output of s3:\/\/bkt\/in\/data\/datax;/,
  );
  assert.equal(await bench.get("out/datax.out"), "in/data/datax");
  await manifest("x");
  assert.equal((await bench.run("one", "echo", { TransformInput: { DataSource: source } })).state.at, "Completed");
  assert.equal(await bench.get("out/datax.out"), "in/datax");
});

test("folder marker objects made by consoles are not model files", async () => {
  await using bench = await TransformFixture.open();
  await bench.put("in/x", "a");
  for (const key of ["models/", "models/sub/"]) await bench.put(key, "");
  await bench.put("models/sub/weights", "w");
  const data = { S3Uri: "s3://bkt/models/", S3DataType: "S3Prefix", CompressionType: "None" } as const;
  const containers = [{ Environment: { DOES: "echo" }, ModelDataSource: { S3DataSource: data } }] as const;
  await bench.begin("folders", "echo", {}, "", containers);
  const { state } = await bench.ended("folders");
  assert.equal(state.at, "Completed", JSON.stringify(state));
  await bench.put("models/sub/full/", "bytes");
  await bench.begin("file", "echo", {}, "", containers);
  const { state: failed } = await bench.ended("file");
  assert.match(
    failed.at === "Failed" ? failed.reason : "",
    /the key models\/sub\/full\/ does not name a file below the prefix/,
  );
});

/** A budget that records the maximum number of bytes in use. */
class WatchedBudget extends ByteBudget {
  peakBytes = 0;

  override reserveUnchecked(bytes: number): void {
    super.reserveUnchecked(bytes);
    this.peakBytes = Math.max(this.peakBytes, this.usedBytes);
  }
}

test("jobs that together need more memory than allowed wait for each other, and all complete", async () => {
  const mebi = 2 ** 20;
  const budget = new WatchedBudget(16 * mebi);
  await using bench = await TransformFixture.open(budget);
  const line = `${"r".repeat(50_000)}\n`;
  const keys = Array.from({ length: 6 }, (_, index) => `o${index}`);
  for (const key of keys) await bench.put(`in/${key}`, line.repeat(60));
  const more = {
    TransformInput: input({ SplitType: "Line" }),
    MaxPayloadInMB: 1,
    MaxConcurrentTransforms: 6,
  };
  const names = ["one", "two", "three"];
  for (const name of names) {
    await bench.begin(name, "quiet", {
      ...more,
      TransformOutput: { S3OutputPath: `s3://bkt/${name}`, AssembleWith: "Line" },
    });
  }
  for (const name of names) assert.equal((await bench.ended(name)).state.at, "Completed");
  for (const name of names) {
    for (const key of keys) assert.equal((await bench.get(`${name}/${key}.out`))?.length, line.length * 60);
  }
  // Maximum: half of the budget, plus one object's 15 MiB. These are a partial record, seven payloads and their seven
  // responses, of 1 MiB each.
  assert.ok(budget.peakBytes > 7 * mebi, String(budget.peakBytes));
  assert.ok(budget.peakBytes <= (8 + 15) * mebi, String(budget.peakBytes));
  assert.equal(budget.usedBytes, 0);
});
