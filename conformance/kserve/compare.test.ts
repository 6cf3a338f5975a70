import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { test } from "node:test";
import type { ComparedResponse, Comparison } from "./case.ts";
import { compareResponses } from "./compare.ts";

const respond = (body: string | Buffer, status = 200, headers: Record<string, string> = {}): ComparedResponse => ({
  status,
  headers,
  body: Buffer.from(body as string),
});
const same = (expected: string, ours: string, how: Comparison, status = 200) =>
  compareResponses([respond(expected, status)], [respond(ours, status)], how) === null;

test("JSON bodies are compared by order of keys and text of numbers, without white space and escapes", () => {
  assert.ok(same('{"a":1.0,"b":"é"}', '{ "a": 1.0, "b": "\\u00e9" }', "json"));
  assert.ok(!same('{"a":1.0}', '{"a":1}', "json"));
  assert.ok(!same('{"a":1,"b":2}', '{"b":2,"a":1}', "json"));
  assert.ok(same('{"data":[NaN,-Infinity]}', '{"data":[NaN,-Infinity]}', "json"));
});

test("in maps the order of keys is ignored, and the text of numbers is compared", () => {
  assert.ok(same('{"a":1,"b":[{"c":1,"d":2}]}', '{"b":[{"d":2,"c":1}],"a":1}', "map"));
  assert.ok(!same('{"a":9007199254740993}', '{"a":9007199254740992}', "map"));
});

test("the order of an ensemble's outputs and repeated parameters are ignored", () => {
  const expected = '{"parameters":{"s":0,"s":0},"outputs":[{"name":"B"},{"name":"A"}]}';
  assert.ok(same(expected, '{"parameters":{"s":0},"outputs":[{"name":"A"},{"name":"B"}]}', "ensemble"));
  assert.ok(!same(expected, '{"parameters":{"s":0},"outputs":[{"name":"A"}]}', "ensemble"));
});

test("an error text may continue after Triton's, and nothing else may differ", () => {
  assert.ok(same('{"error":"bad x"}', '{"error":"bad x: because"}', "error", 400));
  assert.ok(!same('{"error":"bad x"}', '{"error":"really bad x"}', "error", 400));
  assert.ok(!same('{"error":"bad x"}', '{"error":"bad x","code":1}', "error", 400));
  assert.ok(!same('{"error":"bad x"}', "", "error", 400));
});

test("status, content type and content encoding are compared, and the compression level is not", () => {
  const plain = respond("{}", 200, { "content-type": "application/json" });
  assert.notEqual(compareResponses([plain], [respond("{}", 201, plain.headers)], "json"), null);
  assert.notEqual(compareResponses([plain], [respond("{}", 200, { "content-type": "text/plain" })], "json"), null);
  const packed = (level: number) => respond(gzipSync('{"a":1}', { level }), 200, { "content-encoding": "gzip" });
  assert.equal(compareResponses([packed(0)], [packed(9)], "json"), null);
});

test("missing metric families and labels are reported", () => {
  const theirs = '# TYPE nv_x counter\nnv_x{model="m",version="1"} 3\n';
  assert.ok(
    same(theirs, '# TYPE nv_x counter\nnv_x{version="1",model="n"} 9\n# TYPE nv_more gauge\nnv_more 1\n', "metrics"),
  );
  assert.ok(!same(theirs, '# TYPE nv_x counter\nnv_x{model="m"} 3\n', "metrics"));
  assert.ok(!same(theirs, '# TYPE nv_x gauge\nnv_x{model="m",version="1"} 3\n', "metrics"));
});

test("every line of a model's metric families is compared in any order, and those of the server are ignored", () => {
  const family = (name: string, ...lines: string[]) =>
    [`# HELP ${name} of a test`, `# TYPE ${name} counter`, ...lines, ""].join("\n");
  const theirs = family("nv_x", "nv_x 1") + family("b", 'b{l="1"} 2', 'b{l="2"} 3') + family("a", "a 1");
  const lines = ['b{l="2"} 3', 'b{l="1"} 2'];
  assert.ok(
    same(theirs, family("a", "a 1") + family("b", ...lines) + family("galatea_x", "galatea_x 7"), "model-metrics"),
  );
  assert.ok(!same(theirs, family("a", "a 2") + family("b", ...lines), "model-metrics"));
  assert.ok(!same(theirs, family("b", ...lines), "model-metrics"));
  assert.ok(!same(theirs, family("a", "a 1") + family("b", ...lines, 'b{l="3"} 0'), "model-metrics"));
  assert.ok(
    !same(theirs, `${family("a", "a 1")}${family("b", ...lines)}`.replace("counter", "gauge"), "model-metrics"),
  );
});
