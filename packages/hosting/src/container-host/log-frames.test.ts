import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { LogFrames, parseTimeNs, sinceText } from "./log-frames.ts";

function frame(id: number, body: string): Buffer {
  const content = Buffer.from(body);
  const header = Buffer.from([id, 0, 0, 0, 0, 0, 0, 0]);
  header.writeUInt32BE(content.length, 4);
  return Buffer.concat([header, content]);
}

const time = "2026-11-29T06:33:13.108300987Z";

test("messages are the same however the stream is cut", () => {
  const message = fc.tuple(fc.constantFrom("stdout", "stderr"), fc.string({ unit: "binary" }));
  fc.assert(
    fc.property(fc.array(message), fc.array(fc.nat(40)), (messages, cuts) => {
      const bytes = Buffer.concat(
        messages.map(([stream, text]) => frame(stream === "stdout" ? 1 : 2, `${time} ${text}`)),
      );
      const frames = new LogFrames();
      const read: [string, string][] = [];
      let at = 0;
      for (const length of [...cuts, bytes.length]) {
        for (const { stream, text, timeNs } of frames.push(bytes.subarray(at, at + length))) {
          assert.equal(timeNs, parseTimeNs(time));
          read.push([stream, text.toString()]);
        }
        at = Math.min(bytes.length, at + length);
      }
      assert.deepEqual(read, messages);
    }),
  );
});

test("a stream that is not a log and a message of more than 4 MiB are rejected", () => {
  assert.throws(() => new LogFrames().push(frame(1, "without a time\n")), {
    message: "a log message has no time: without a time\n",
  });
  const header = frame(1, "");
  header.writeUInt32BE(2 ** 31, 4);
  assert.throws(() => new LogFrames().push(header), {
    message: "a log message has 2147483648 bytes, more than 4194304",
  });
});

test("times are read to the nanosecond, with zones and fewer digits, and written as `since` expects them", () => {
  assert.equal(parseTimeNs("1970-01-01T00:00:01.000000002Z"), 1_000_000_002n);
  assert.equal(parseTimeNs("1970-01-01T02:00:01.5+02:00"), 1_500_000_000n);
  assert.equal(parseTimeNs("1970-01-01T00:00:07Z"), 7_000_000_000n);
  for (const text of ["", "now", "1970-01-01", "1970-13-01T00:00:00Z"]) assert.equal(parseTimeNs(text), null, text);
  assert.equal(sinceText(1_000_000_002n), "1.000000002");
  assert.equal(sinceText(0n), "0.000000000");
});
