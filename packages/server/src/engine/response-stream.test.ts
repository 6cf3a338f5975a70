import assert from "node:assert/strict";
import { test } from "node:test";
import { InferenceError } from "@galatea/base";
import { noParameters, type Outcome } from "../inference/index.ts";
import { createArena } from "../tensor/index.ts";
import { ResponseStream } from "./response-stream.ts";

function watched() {
  const seen: string[] = [];
  const stream = new ResponseStream(
    {
      respond(outcome, isFinal, consumed) {
        const what = outcome === null ? "nothing" : outcome instanceof InferenceError ? outcome.message : "a response";
        seen.push(isFinal ? `${what}, final` : what);
        consumed();
      },
    },
    null,
  );
  return { seen, stream };
}

const createResponse = (): Outcome => ({ modelName: "m", modelVersion: "1", outputs: [], parameters: noParameters });

test("the model's final response stays the last one, however the request ends afterwards", () => {
  const { seen, stream } = watched();
  stream.respond(createResponse(), false, () => {});
  stream.respond(createResponse(), true, () => {});
  stream.end(new InferenceError("CANCELLED", "gone"));
  stream.end(null);
  assert.deepEqual(seen, ["a response", "a response, final"]);
});

test("a request that ends without a final response gets one", () => {
  for (const [error, last] of [
    [new InferenceError("INTERNAL", "died"), "died, final"],
    [null, "nothing, final"],
  ] as const) {
    const { seen, stream } = watched();
    stream.respond(createResponse(), false, () => {});
    stream.end(error);
    assert.deepEqual(seen, ["a response", last]);
  }
});

test("responses after the end are released and acknowledged", () => {
  const { seen, stream } = watched();
  stream.end(new InferenceError("CANCELLED", "gone"));
  using arena = createArena({ capacityBytes: 2 ** 20 });
  const block = arena.allocate(4);
  const data = block.bytes.subarray(0, 4);
  let takenCount = 0;
  const late = { name: "OUT", datatype: "FP32", shape: [1], data, block } as const;
  stream.respond({ modelName: "m", modelVersion: "1", outputs: [late], parameters: noParameters }, false, () => {
    takenCount++;
  });
  stream.respond(null, true, () => {});
  assert.deepEqual([seen, takenCount, arena.usedBytes], [["gone, final"], 1, 0]);
});
