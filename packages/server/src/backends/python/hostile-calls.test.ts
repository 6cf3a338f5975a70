/** Invalid frames of a worker about calls to other models: the worker is killed, and no block of the arena stays lent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { InferenceError } from "@galatea/base";
import type { ResponseSink } from "../../inference/index.ts";
import { releaseTensors } from "../../tensor/index.ts";
import { noBlsClient } from "../no-bls-client.ts";
import type { ModelCall, BlsClient } from "../bls-client.ts";
import {
  encodeCall,
  encodeCallSpaceRequest as ask,
  encodeResult,
  execute,
  outputResponse,
  send,
  withinTime,
} from "./hostile-wire.ts";
import { openHostileInstance, type HostileInstance } from "./hostile-worker.ts";
import { request } from "./python-fixture.ts";
import { encodeFrame, headerBytes, kinds } from "./wire.ts";

const said = {
  execution: 1,
  model: "m",
  version: "",
  id: "",
  correlation: ["0"],
  flags: 0,
  timeout: 0,
  outputs: null,
  parameters: "",
  names: ["IN"],
};

const frameOf = (kind: number, id: number, more: { extra?: number; body?: Uint8Array; count?: number } = {}) =>
  encodeFrame(kind, more.body ?? new Uint8Array(), { id, extra: more.extra ?? 0, count: more.count ?? 0 });
/** Does not respond until the call is aborted. */
class Waiting implements BlsClient {
  readonly calls: ModelCall[] = [];
  readonly sinks: ResponseSink[] = [];

  infer(call: ModelCall): Promise<never> {
    this.calls.push(call);
    return new Promise((_, reject) => {
      const end = () => {
        releaseTensors(call.inputs);
        reject(new InferenceError("CANCELLED", ""));
      };
      if (call.signal.aborted) end();
      else call.signal.addEventListener("abort", end);
    });
  }

  async stream(call: ModelCall, sink: ResponseSink): Promise<void> {
    this.sinks.push(sink);
    await this.infer(call).catch((error: unknown) => sink.respond(InferenceError.from(error), true, () => {}));
  }

  load = () => Promise.resolve();
  unload = () => Promise.resolve();
  isReady = () => true;
}

const deep = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

/** Frames that are sent while execution 1, whose input is lent block 1, is running. */
const attacks: readonly [what: string, frames: () => readonly Buffer[], told: RegExp][] = [
  ["a call that is no JSON", () => [encodeCall(1, "{")], /not a JSON object/],
  ["a call that is a list", () => [encodeCall(1, "[]")], /not a JSON object/],
  ["a call nested a million deep", () => [encodeCall(1, `{"model":${deep(1_000_000)}}`)], /nested too deeply/],
  ["a call of 5 MB", () => [encodeCall(1, { ...said, model: "x".repeat(5_000_000) })], /JSON of \d+ bytes/],
  ["a call without a model", () => [encodeCall(1, { ...said, model: undefined })], /an invalid string/],
  ["a model that is a number", () => [encodeCall(1, { ...said, model: 7 })], /an invalid string/],
  [
    "an execution id that is out of range",
    () => [encodeCall(1, { ...said, execution: 2 ** 60 })],
    /invalid or out of range/,
  ],
  ["an execution that is a text", () => [encodeCall(1, { ...said, execution: "1" })], /invalid or out of range/],
  ["a negative timeout", () => [encodeCall(1, { ...said, timeout: -1 })], /invalid or out of range/],
  ["a correlation of words", () => [encodeCall(1, { ...said, correlation: ["x"] })], /not a number/],
  ["a correlation of 40 digits", () => [encodeCall(1, { ...said, correlation: ["9".repeat(40)] })], /not a number/],
  [
    "names without end",
    () => [encodeCall(1, { ...said, names: Array.from({ length: 5000 }, () => "") })],
    /invalid names/,
  ],
  ["parameters that nest", () => [encodeCall(1, { ...said, parameters: '{"a":{}}' })], /not a JSON object of strings/],
  ["an input without a name", () => [encodeCall(1, { ...said, names: [] }, { inputs: [{}] })], /input 0 of 0/],
  ["an input of no datatype", () => [encodeCall(1, said, { inputs: [{ datatype: 200 }] })], /datatype 200/],
  ["an input in a block that it was not lent", () => [encodeCall(1, said, { inputs: [{ blockRef: 9 }] })], /block 9/],
  [
    "an input outside its block",
    () => [encodeCall(1, said, { inputs: [{ blockRef: 1, byteOffset: 4090n, byteLength: 100n }] })],
    /outside its block/,
  ],
  [
    "an input of 2^63 bytes",
    () => [encodeCall(1, said, { inputs: [{ blockRef: 1, byteLength: 2n ** 63n }] })],
    /beyond 2\^53/,
  ],
  ["an input of negative size", () => [encodeCall(1, said, { inputs: [{ shape: [-1n] }] })], /beyond 2\^53/],
  [
    "an input that is not in its frame",
    () => [encodeCall(1, said, { inputs: [{ byteLength: 5n }] })],
    /outside the frame/,
  ],
  ["a call that lends", () => [encodeCall(1, said, { loans: 1 })], /lends blocks/],
  ["unknown flags", () => [encodeCall(1, said, { extra: 2 })], /flags 2/],
  ["the same call twice", () => [encodeCall(1, said), encodeCall(1, said)], /already running/],
  ["space for a call that was already sent", () => [encodeCall(1, said), ask(1, 8n)], /already running/],
  ["space requested twice", () => [ask(1, 8n), ask(1, 8n)], /already running/],
  [
    "more calls than it may have",
    () => Array.from({ length: 513 }, (_, index) => encodeCall(index, said)),
    /too many concurrent calls/,
  ],
  [
    "wishes for space without end",
    () => Array.from({ length: 513 }, (_, index) => ask(index, 8n)),
    /too many concurrent calls/,
  ],
  [
    "responses acknowledged that were never sent",
    () => [encodeCall(1, said, { extra: 1 }), frameOf(kinds.callCredit, 1, { extra: 9 })],
    /never sent/,
  ],
  ["a control without its files", () => [frameOf(kinds.control, 1, { extra: 1, count: 3 })], /ends before|no JSON/],
  [
    "an output in space of a call",
    () => [
      ask(1, 64n),
      encodeResult(1, [
        outputResponse("", [
          { nameIndex: 0, datatype: 11, rank: 1, shape: [16n], blockRef: 2, byteOffset: 0n, byteLength: 64n },
        ]),
      ]),
    ],
    /not lent/,
  ],
];

for (const [what, frames, pattern] of attacks) {
  test(`${what}: the worker is terminated, its calls are cancelled, all memory is released`, async () => {
    await using hostile = await openHostileInstance({ others: new Waiting() });
    const { settled } = execute(hostile, 1);
    await withinTime(async () => {
      await send(hostile, Buffer.concat(frames()));
      assert.match(await hostile.worker.ended, pattern);
    });
    await settled;
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([hostile.arena.usedBytes, hostile.worker.lent.count], [0, 0]);
  });
}

async function received(hostile: HostileInstance, kind: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  return await new Promise((resolve) => {
    hostile.socket.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      const bytes = Buffer.concat(chunks);
      for (let at = 0; at + headerBytes <= bytes.byteLength; at += bytes.readUInt32LE(at))
        if (bytes.readUInt16LE(at + 4) === kind) resolve(bytes.subarray(at));
    });
  });
}

const textOf = (frame: Buffer) =>
  JSON.parse(frame.toString("utf8", headerBytes + 16, headerBytes + 16 + frame.readUInt32LE(headerBytes))) as unknown;

test("frames about ended or unknown calls are ignored", async () => {
  await using hostile = await openHostileInstance();
  const { settled } = execute(hostile, 1);
  const responses = received(hostile, kinds.callResponse);
  await send(
    hostile,
    Buffer.concat([
      frameOf(kinds.callCancel, 7),
      frameOf(kinds.callCredit, 7, { extra: 100 }),
      ask(8, 64n),
      frameOf(kinds.callCancel, 8),
      encodeCall(9, { ...said, execution: 4_000_000_000 }),
    ]),
  );
  assert.deepEqual(textOf(await responses), {
    code: 2,
    message: "calls to other models are not available while a model is only checked",
  });
  await send(hostile, encodeResult(1, [outputResponse("")], { released: [1] }));
  await settled;
  assert.deepEqual([hostile.arena.usedBytes, hostile.worker.lent.count], [0, 0]);
});

test("a request for more memory than the arena is rejected, and the call's number is free again", async () => {
  await using hostile = await openHostileInstance();
  const refused = received(hostile, kinds.callSpace);
  await send(hostile, ask(1, 2n ** 40n));
  const frame = await refused;
  assert.equal(frame.readUInt32LE(12), 1);
  assert.match(frame.toString("utf8", headerBytes), /shared memory arena is full/);
  assert.equal(hostile.arena.usedBytes, 0);
});

test("calls are cancelled when their execution is cancelled, and later ones at once", async () => {
  const others = new Waiting();
  await using hostile = await openHostileInstance({ others });
  const requested = request([]);
  const execution = hostile.instance.execute([requested]);
  const responses = received(hostile, kinds.callResponse);
  await send(hostile, encodeCall(1, { ...said, names: [] }));
  while (others.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(others.calls[0]!.caller?.depth, 1);
  hostile.instance.abandonRequest(requested);
  assert.deepEqual(textOf(await responses), { code: 7, message: "the call was cancelled" });
  await send(hostile, encodeCall(2, { ...said, names: [] }));
  while (others.calls.length === 1) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(others.calls[1]!.signal.aborted, true);
  assert.equal(hostile.instance.executionsMax, 1);
  await send(hostile, encodeResult(1, [outputResponse("")]));
  await execution;
});

test("a model that makes no calls gets several executions at once", async () => {
  await using hostile = await openHostileInstance({ others: noBlsClient });
  assert.ok(hostile.instance.executionsMax > 1);
});
