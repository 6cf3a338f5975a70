/** Random frames of a worker, in random order, split at random positions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { InferenceError } from "@galatea/base";
import { noParameters } from "../../inference/index.ts";
import { CustomMetricFamilies } from "@galatea/base/metrics";
import type { Arena } from "../../tensor/index.ts";
import { noBlsClient } from "../no-bls-client.ts";
import type { BlsClient } from "../bls-client.ts";
import { hostileFrames, mutatedFrames, arbitraryFrames } from "./hostile-arbitraries.ts";
import { execute, send, withinTime } from "./hostile-wire.ts";
import { openHostileInstance, openHostileWorker } from "./hostile-worker.ts";
import { request } from "./python-fixture.ts";
import { kinds } from "./wire.ts";

/** Returns the inputs of a call as its outputs, at once. */
const echoing: BlsClient = {
  ...noBlsClient,
  infer: ({ modelName, inputs }) =>
    Promise.resolve({ modelName, modelVersion: "1", outputs: inputs, parameters: noParameters }),
  async stream(call, sink) {
    sink.respond(await this.infer(call), true, () => {});
  },
};

/** Accepts valid requests for metrics. */
const counting = (arena: Arena) =>
  new CustomMetricFamilies(() => false).open(
    "",
    { linesMax: 9, textLengthMax: 99, writersMax: 9, bytesMax: 3000, boundsMax: 3 },
    (count) => {
      const block = arena.allocate(8 * count);
      const cells = new Float64Array(block.bytes.buffer, block.bytes.byteOffset, count).fill(0);
      return { cells, byteOffset: block.byteOffset, [Symbol.dispose]: () => block.release() };
    },
  );

const transitions = fc.array(
  fc.oneof(
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant("execute" as const), requestCount: fc.integer({ min: 1, max: 2 }) }),
    },
    {
      weight: 5,
      arbitrary: fc.record({ kind: fc.constant("send" as const), bytes: fc.oneof(hostileFrames, mutatedFrames) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("give up" as const) }) },
  ),
  { minLength: 1, maxLength: 12 },
);

test("property: whatever a worker sends, in any order and chunks, every execution ends and all memory is released", async () => {
  await fc.assert(
    fc.asyncProperty(transitions, fc.integer({ min: 1, max: 40 }), async (drawn, chunkBytes) => {
      await using hostile = await openHostileInstance({ others: echoing, metrics: counting });
      const running = [execute(hostile, 1)];
      await withinTime(async () => {
        for (const transition of drawn) {
          if (transition.kind === "execute") running.push(execute(hostile, transition.requestCount));
          else if (transition.kind === "give up") hostile.instance.abandonRequest(request([]));
          else
            for (let at = 0; at < transition.bytes.byteLength; at += chunkBytes * 16)
              await send(hostile, transition.bytes.subarray(at, at + chunkBytes * 16));
        }
        hostile.worker.kill("the test is over");
        await hostile.worker.ended;
        await Promise.all(running.map(({ settled }) => settled));
      });
      assert.deepEqual([hostile.arena.usedBytes, hostile.worker.lent.count], [0, 0]);
    }),
    { numRuns: 250 },
  );
});

test("property: whatever a worker responds to a step, the step ends with the response or with the worker", async () => {
  const steps = fc.constantFrom(
    [kinds.load, kinds.loaded] as const,
    [kinds.complete, kinds.completed] as const,
    [kinds.initialize, kinds.initialized] as const,
  );
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.array(fc.oneof(arbitraryFrames, mutatedFrames), { maxLength: 6 }),
      async ([kind, reply], sent) => {
        await using hostile = await openHostileWorker();
        const call = hostile.worker.call(kind, reply, {}, null).then(
          () => "answered",
          (error: unknown) => InferenceError.from(error).code,
        );
        await withinTime(async () => {
          for (const bytes of sent) await send(hostile, bytes);
          hostile.worker.kill("the test is over");
          assert.ok(["answered", "INTERNAL"].includes(await call));
        });
      },
    ),
    { numRuns: 100 },
  );
});
