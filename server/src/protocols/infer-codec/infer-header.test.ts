import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteBudget, ByteLease } from "../../base/index.ts";
import { JsonScanner } from "../../tensor/index.ts";
import { parseInferHeader } from "./infer-header.ts";

const parse = (document: unknown) =>
  parseInferHeader(
    new JsonScanner(Buffer.from(JSON.stringify(document))),
    2 ** 26,
    new ByteLease(new ByteBudget(2 ** 30)),
  );

test("an output that is asked for twice is wanted as it was asked for first", () => {
  const outputs = [{ name: "A", parameters: { binary_data: true } }, { name: "B" }, { name: "A" }];
  assert.deepEqual(parse({ inputs: [], outputs }).outputs, [
    { name: "A", binary: true, classCount: 0 },
    { name: "B", binary: false, classCount: 0 },
  ]);
});

test("as many outputs as a request may ask for are read in no time", () => {
  const outputs = Array.from({ length: 100_000 }, (_, index) => ({ name: `output${index}` }));
  const startMs = performance.now();
  assert.equal(parse({ inputs: [], outputs }).outputs?.length, 100_000);
  // Each compared with each takes ten seconds and more.
  assert.ok(performance.now() - startMs < 3000);
});
