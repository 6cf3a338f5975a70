import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { encodeEvent, encodeEventHeaders } from "./event-stream.ts";
import { readEvents } from "./event-stream-reading.ts";

const text = (maxLength: number) => fc.string({ unit: "binary", maxLength });
const message = fc.record({
  headers: fc.uniqueArray(fc.tuple(text(40), text(500)), { selector: ([name]) => name, maxLength: 6 }),
  payload: fc.oneof(fc.uint8Array({ maxLength: 100 }), fc.uint8Array({ minLength: 4000, maxLength: 5000 })),
});

test("property: messages are decoded as they were encoded, with both checksums correct", () => {
  fc.assert(
    fc.property(fc.array(message, { maxLength: 5 }), (messages) => {
      const bytes = Buffer.concat(
        messages.map(({ headers, payload }) => encodeEvent(encodeEventHeaders(headers), payload)),
      );
      const { events, rest } = readEvents(bytes);
      assert.equal(rest.length, 0);
      const found = events.map(({ headers, payload }) => ({ headers: Object.entries(headers), payload: [...payload] }));
      const expected = messages.map(({ headers, payload }) => ({
        headers: Object.entries(Object.fromEntries(headers)),
        payload: [...payload],
      }));
      assert.deepEqual(found, expected);
    }),
    { numRuns: 200 },
  );
});

test("a message is encoded to the same bytes as by Amazon's encoder", () => {
  const headers = encodeEventHeaders([
    [":message-type", "event"],
    [":event-type", "PayloadPart"],
  ]);
  const written = encodeEvent(headers, Buffer.from("hello"));
  // The output of `@smithy/core/event-streams` 3.41.0.
  const golden =
    "0000004500000030d3e838fc0d3a6d6573736167652d747970650700056576656e740b3a6576656e742d7479706507000b5061796c6f61645061727468656c6c6f2375eed4";
  assert.equal(written.toString("hex"), golden);
});
