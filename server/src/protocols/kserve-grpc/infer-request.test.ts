import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteBudget, ByteLease, systemClock } from "../../base/index.ts";
import { FakeArena } from "../fake-arena.ts";
import { FakeEngine } from "../fake-engine.ts";
import type { InferMessage, MessageInput } from "./infer-message.ts";
import { decodeInferRequest } from "./infer-request.ts";

const refused: readonly [what: string, input: Partial<MessageInput>][] = [
  ["a negative dimension", { shape: [-1] }],
  ["more elements than there can be", { shape: [2 ** 40, 2 ** 40] }],
  ["a datatype that does not exist", { datatype: "FP33" }],
];
for (const [what, input] of refused) {
  test(`an input of ${what} leaves nothing of its raw contents in the arena`, () => {
    const budget = new ByteBudget(2 ** 20);
    const arena = new FakeArena(2 ** 20, budget);
    const engine = new FakeEngine();
    engine.add("m", { inputs: { IN: ["FP32", [-1]] }, outputs: { OUT: ["FP32", [-1]] }, run: () => [] });
    const block = arena.allocate(4);
    const message: InferMessage = {
      modelName: "m",
      modelVersion: "",
      id: "",
      parameters: new Map(),
      inputs: [{ name: "IN", datatype: "FP32", shape: [1], parameters: new Map(), contents: [], ...input }],
      outputs: [],
      raw: [{ bytes: block.bytes, block }],
      memory: new ByteLease(budget),
    };
    const model = { ...engine.open({ namespace: "", modelName: "m", modelVersion: "" }), arena };
    const { signal } = new AbortController();
    const options = { model, signal, clock: systemClock, receivedNs: 0, forwarded: [] };
    assert.throws(() => decodeInferRequest(message, options), { code: "INVALID_ARG" });
    assert.equal(arena.usedBytes, 0);
  });
}
