import assert from "node:assert/strict";
import { test } from "node:test";
import { splitCsvRow } from "./csv-row.ts";
import { parseJsonExactly } from "./exact-json.ts";
import { parseJsonPath, selectJsonPath } from "./json-path.ts";
import { ObjectProgress } from "./job-progress.ts";
import { outputKey } from "./object-names.ts";

const picked = (path: string, value: unknown) => {
  const parsed = parseJsonPath(path);
  assert(parsed !== null, path);
  return JSON.stringify(selectJsonPath(parsed, value));
};

test("a JSONPath selects one value, or several as an array or an object", () => {
  const row = ["a", "b", "c", "d"];
  assert.equal(picked("$", row), '["a","b","c","d"]');
  assert.equal(picked("$[1:]", row), '["b","c","d"]');
  assert.equal(picked("$[0,-1]", row), '["a","d"]');
  assert.equal(picked("$[0,2:]", row), '["a","c","d"]');
  assert.equal(picked("$[-2:]", row), '["c","d"]');
  assert.equal(picked("$[1]", row), '"b"');
  assert.equal(picked("$[*]", row), '["a","b","c","d"]');
  const object = { id: 1, "b c": { d: [1, 2, 3] }, SageMakerOutput: 2 };
  assert.equal(picked("$['id','SageMakerOutput']", object), '{"id":1,"SageMakerOutput":2}');
  assert.equal(picked("$['b c'].d[1:]", object), "[2,3]");
  assert.equal(picked("$.id", object), "1");
  assert.equal(picked("$['__proto__','id']", parseJsonExactly('{"__proto__":1,"id":2}')), '{"__proto__":1,"id":2}');
});

test("invalid paths are rejected, and a path that a row does not contain is an error", () => {
  for (const path of [
    "a",
    "$..a",
    "$[?(@.a)]",
    "$[(1)]",
    "$.",
    "$[",
    "$[]",
    "$[a]",
    "$[1:2].a",
    `$.${"a".repeat(70)}`,
  ]) {
    assert.equal(parseJsonPath(path), null, path);
  }
  assert.throws(() => picked("$[9]", ["a"]), /index 9 is beyond the 1 entries/);
  assert.throws(() => picked("$.toString", {}), /finds no attribute 'toString'/);
  assert.throws(() => picked("$['a','b']", { a: 1 }), /finds no attribute 'b'/);
});

test("splitCsvRow keeps the quotes of fields and the commas inside them", () => {
  assert.deepEqual(splitCsvRow('a,"b,""c""",,d'), ["a", '"b,""c"""', "", "d"]);
});

test("outputKey keeps the path of an object below the prefix of the input", () => {
  const target = { bucket: "bkt", key: "out" };
  assert.equal(outputKey("in/a/x.csv", "in/", target), "out/a/x.csv.out");
  assert.equal(outputKey("in/a/x.csv", "in", target), "out/a/x.csv.out");
  assert.equal(outputKey("in/x.csv", "in/x.csv", target), "out/x.csv.out");
  assert.equal(outputKey("in/x1", "in/x", { bucket: "bkt", key: "" }), "x1.out");
});

test("the progress of a job is the last object before the first unfinished one, and the finished objects after it", () => {
  const order = new ObjectProgress(null);
  const object = (ordinal: number) => {
    const location = { bucket: "bkt", key: `k${ordinal}` };
    return { place: location, output: location, ordinal, siblingKey: null };
  };
  for (const ordinal of [0, 1, 2]) order.started(object(ordinal));
  assert.deepEqual(order.ended(object(2)), { after: null, doneKeys: ["k2"] });
  assert.deepEqual(order.ended(object(0)), { after: { ordinal: 0, key: "k0" }, doneKeys: ["k2"] });
  assert.deepEqual(order.ended(object(1)), { after: { ordinal: 2, key: "k2" }, doneKeys: [] });
});
