import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteBudget, ByteLease } from "@galatea/base";
import { JsonScanner } from "../../tensor/index.ts";
import { parseInferHeader } from "./infer-header.ts";
import { threadCpuMs } from "@galatea/base/core/cpu-time-fixture.ts";

const parse = (document: unknown) =>
  parseInferHeader(
    new JsonScanner(Buffer.from(JSON.stringify(document))),
    2 ** 26,
    new ByteLease(new ByteBudget(2 ** 30)),
  );

const named = (count: number, value: unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, value]));

test("an output that is requested twice is returned as it was requested first", () => {
  const outputs = [{ name: "A", parameters: { binary_data: true } }, { name: "B" }, { name: "A" }];
  assert.deepEqual(parse({ inputs: [], outputs }).outputs, [
    { name: "A", binary: true, classCount: 0 },
    { name: "B", binary: false, classCount: 0 },
  ]);
});

for (const [what, documentOf] of [
  ["parameters", (count) => ({ parameters: named(count, 1), inputs: [] })],
  ["dimensions", (count) => ({ inputs: [{ name: "A", datatype: "FP32", shape: Array(count).fill(1), data: [1] }] })],
  [
    "parameters of many outputs",
    (count) => ({
      inputs: [],
      outputs: Array.from({ length: 2 }, (_, index) => ({ name: `${index}`, parameters: named(count / 2, 1) })),
    }),
  ],
] as const satisfies readonly (readonly [what: string, documentOf: (count: number) => unknown])[])
  test(`a request has at most 100,000 ${what}, and is rejected before more are read`, () => {
    parse(documentOf(100_000));
    const message = "a request has at most 100000 parameters and dimensions";
    assert.throws(() => parse(documentOf(100_002)), { code: "INVALID_ARG", message });
  });

test("the maximum number of requested outputs is read quickly", () => {
  const outputs = Array.from({ length: 100_000 }, (_, index) => ({ name: `output${index}` }));
  const startMs = threadCpuMs();
  assert.equal(parse({ inputs: [], outputs }).outputs?.length, 100_000);
  // A comparison of every name with every other would take more than ten seconds.
  assert.ok(threadCpuMs() - startMs < 3000);
});
