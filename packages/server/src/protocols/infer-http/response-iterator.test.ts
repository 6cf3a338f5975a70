import assert from "node:assert/strict";
import { test } from "node:test";
import { InferenceError } from "@galatea/base";
import type { ServedModel } from "../../engine/index.ts";
import {
  noParameters,
  newInferenceRequest,
  type ResponseSink,
  type InferenceRequest,
  type InferenceResponse,
} from "../../inference/index.ts";
import { createArena } from "../../tensor/index.ts";
import { ResponseIterator } from "./response-iterator.ts";

const request = (signal: AbortSignal | null): InferenceRequest =>
  newInferenceRequest({
    modelName: "m",
    inputs: [],
    signal,
  });

/** Opens an iterator over responses that the test sends, and counts the acknowledged ones. */
function open(signal: AbortSignal | null = null) {
  const arena = createArena({ capacityBytes: 2 ** 20 });
  let sink!: ResponseSink;
  let seen!: AbortSignal;
  const state = { takenCount: 0 };
  const model: Pick<ServedModel, "stream"> = {
    stream(requested, input) {
      sink = input;
      seen = requested.signal as AbortSignal;
      return Promise.resolve();
    },
  };
  const responses = new ResponseIterator(model as ServedModel, request(signal));
  const createResponse = (version: string): InferenceResponse => {
    const block = arena.allocate(4);
    const output = { name: "OUT", datatype: "FP32", shape: [1], data: block.bytes.subarray(0, 4), block } as const;
    return { modelName: "m", modelVersion: version, outputs: [output], parameters: noParameters };
  };
  return {
    answers: responses,
    state,
    arena,
    signal: seen,
    give: (version: string, isFinal = false) =>
      sink.respond(createResponse(version), isFinal, () => state.takenCount++),
    fail: (text: string) => sink.respond(new InferenceError("INTERNAL", text), true, () => state.takenCount++),
    end: () => sink.respond(null, true, () => state.takenCount++),
    [Symbol.dispose]: () => arena[Symbol.dispose](),
  };
}

async function nextOf(responses: ResponseIterator): Promise<string> {
  const { done, value } = await responses.next();
  if (done) return "done";
  return value instanceof InferenceError ? value.message : value.modelVersion;
}

test("a response is acknowledged when the next one is requested; a final flag without a response is not returned", async () => {
  using opened = open();
  const { answers, state, give, end } = opened;
  give("1");
  give("2");
  assert.equal(await nextOf(answers), "1");
  assert.equal(state.takenCount, 0);
  assert.equal(await nextOf(answers), "2");
  assert.equal(state.takenCount, 1);
  const waiting = nextOf(answers);
  assert.equal(state.takenCount, 2);
  end();
  assert.equal(await waiting, "done");
  assert.equal(await nextOf(answers), "done");
});

test("a pending read gets the next response, or the error that ends the stream", async () => {
  using opened = open();
  const { answers, give, fail } = opened;
  const waiting = nextOf(answers);
  give("1");
  assert.equal(await waiting, "1");
  fail("died");
  assert.equal(await nextOf(answers), "died");
  assert.equal(await nextOf(answers), "done");
});

test("a reader that stops before the end cancels the request; earlier and later responses are released and acknowledged", async () => {
  using opened = open();
  const { answers, state, arena, signal, give } = opened;
  give("1");
  give("2");
  give("3");
  for await (const first of answers) {
    assert.ok(!(first instanceof InferenceError));
    for (const { block } of first.outputs) block?.release();
    break;
  }
  assert.deepEqual([signal.aborted, state.takenCount, arena.usedBytes], [true, 3, 0]);
  give("4", true);
  assert.deepEqual([state.takenCount, arena.usedBytes], [4, 0]);
});

test("a request whose last response was returned is not cancelled", async () => {
  using opened = open();
  const { answers, signal, give } = opened;
  give("1", true);
  for await (const outcome of answers) {
    if (!(outcome instanceof InferenceError)) for (const { block } of outcome.outputs) block?.release();
  }
  await answers.return();
  assert.equal(signal.aborted, false);
});

test("the request's own signal also aborts the model's", () => {
  const controller = new AbortController();
  using opened = open(controller.signal);
  const { signal } = opened;
  controller.abort();
  assert.equal(signal.aborted, true);
});
