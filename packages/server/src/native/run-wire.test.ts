import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import {
  frameByteLength,
  FrameWriter,
  type RunThreadResult,
  type RunThreadCommand,
  MalformedRunFrame,
  readRunThreadResult,
  readRunThreadCommand,
} from "./run-wire.ts";

const plain = { noNullPrototype: true };
const natural = fc.maxSafeNat();
const shape = fc.array(natural, { maxLength: 64 });
const value = fc.record(
  {
    name: natural,
    elementType: fc.nat(32),
    address: natural,
    byteLength: natural,
    shape: fc.option(shape),
  },
  plain,
);
const command: fc.Arbitrary<RunThreadCommand> = fc.oneof(
  fc.record(
    {
      kind: fc.constant("run" as const),
      session: natural,
      shrink: fc.boolean(),
      processors: fc.array(fc.nat(1023)),
      inputs: fc.array(value, { maxLength: 30 }),
      outputs: fc.array(value, { maxLength: 30 }),
    },
    plain,
  ),
  fc.record({ kind: fc.constant("place" as const), addresses: fc.array(natural) }, plain),
  fc.constant({ kind: "drop" as const }),
);
const result = fc.record({ elementType: fc.nat(32), byteLength: natural, shape }, plain);
const runResult: fc.Arbitrary<RunThreadResult> = fc.oneof(
  fc.record({ kind: fc.constantFrom("done" as const, "unplaced" as const), results: fc.array(result) }, plain),
  fc.record({ kind: fc.constant("failed" as const), message: fc.string({ unit: "grapheme" }) }, plain),
);

const wordsOf = (frame: Uint8Array) =>
  new Float64Array(frame.buffer.slice(frame.byteOffset, frame.byteOffset + frame.byteLength));

test("every call and every response is decoded as it was encoded", () => {
  const writer = new FrameWriter();
  fc.assert(
    fc.property(command, runResult, (sent, returned) => {
      const words = wordsOf(writer.command(sent));
      assert.equal(frameByteLength(words[0]!), words.byteLength);
      assert.deepEqual(readRunThreadCommand(words), sent);
      assert.deepEqual(readRunThreadResult(wordsOf(writer.result(returned))), returned);
    }),
  );
});

test("a damaged response is either decoded or rejected as malformed", () => {
  const writer = new FrameWriter();
  const damage = fc.record({ at: fc.nat(), with: fc.double() }, { noNullPrototype: true });
  fc.assert(
    fc.property(runResult, damage, (returned, { at, with: word }) => {
      const words = wordsOf(writer.result(returned));
      words[at % words.length] = word;
      try {
        readRunThreadResult(words);
      } catch (error) {
        assert.ok(error instanceof MalformedRunFrame, String(error));
      }
    }),
  );
});

test("a text longer than any message of a library is truncated", () => {
  const decoded = readRunThreadResult(
    wordsOf(new FrameWriter().result({ kind: "failed", message: "x".repeat(100_000) })),
  );
  assert.ok(decoded.kind === "failed" && decoded.message.length === 65_536);
});
