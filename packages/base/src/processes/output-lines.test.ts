import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { SteppedClock } from "../core/stepped-clock-fixture.ts";
import { defaultOutputLimits, OutputLines, type OutputLimits } from "./output-lines.ts";
import { lineCostBytes } from "./output-lines.ts";

const notice = /^\.\.\. (\d+) lines \((\d+) bytes\) omitted: the process writes faster than its lines are logged$/;

test("lines are cut at a length, the last ones are kept, and lines over the rate are counted where they are left out", () => {
  const clock = new SteppedClock();
  const forwarded: string[] = [];
  const bytesPerSecondMax = 10 + 1 + 1 + 3 * lineCostBytes;
  const lines = new OutputLines(clock, (line) => forwarded.push(line), {
    lineBytesMax: 10,
    tailLines: 2,
    rate: { bytesPerSecondMax, burstBytesMax: bytesPerSecondMax },
  });
  lines.push(Buffer.from(`${"x".repeat(1000)}\na\nb\n \t\r\nc\n${"d".repeat(12)}\nda`));
  assert.deepEqual(forwarded, ["xxxxxxxxxx ... (990 bytes cut)", "a", "b"]);
  assert.deepEqual(lines.tail, ["c", "dddddddddd ... (2 bytes cut)", "da"]);
  clock.advance(1000);
  lines.push(Buffer.from("\ne\nun"));
  lines.push(Buffer.from("done"));
  assert.deepEqual(lines.tail, ["da", "e", "undone"]);
  lines.end();
  lines.end();
  assert.deepEqual(forwarded.slice(3), [
    "... 2 lines (13 bytes) omitted: the process writes faster than its lines are logged",
    "da",
    "e",
    "undone",
  ]);
});

test("left-out lines are reported a second later if the process goes quiet, and at once if it ends", () => {
  const clock = new SteppedClock();
  const forwarded: string[] = [];
  const flood = Buffer.from("x\n".repeat(100_000));
  const lines = new OutputLines(clock, (line) => forwarded.push(line));
  lines.push(flood);
  assert.doesNotMatch(forwarded.at(-1)!, notice);
  clock.advance(1000);
  assert.match(forwarded.at(-1)!, notice);
  lines.push(flood);
  lines.end();
  assert.match(forwarded.at(-1)!, notice);
  const count = forwarded.length;
  clock.advance(10_000);
  assert.equal(forwarded.length, count);
});

test("the tracebacks of a model that raises in each of a hundred requests a second are forwarded completely", () => {
  const clock = new SteppedClock();
  const forwarded: string[] = [];
  const lines = new OutputLines(clock, (line) => forwarded.push(line));
  const traceback = `${'  File "/opt/ml/model/code/inference.py", line 12, in predict_fn\n'.repeat(20)}ValueError: no\n`;
  for (let request = 0; request < 1000; request++) {
    lines.push(Buffer.from(traceback));
    clock.advance(10);
  }
  assert.equal(forwarded.length, 21_000);
});

/** Lines of several lengths, including blank ones. Each has different bytes, so that the tests can check the order. */
const texts = fc.array(
  fc.oneof(
    fc.integer({ min: 0, max: 999 }).map(String),
    fc.integer({ min: 10, max: 60 }).map((length) => "long ".repeat(length / 5)),
    fc.constantFrom("", " ", "\r"),
  ),
  { maxLength: 60 },
);

const limitsOf = fc.record({
  lineBytesMax: fc.integer({ min: 4, max: 40 }),
  tailLines: fc.integer({ min: 1, max: 4 }),
  rate: fc.record({
    bytesPerSecondMax: fc.integer({ min: 1, max: 2000 }),
    burstBytesMax: fc.integer({ min: 200, max: 4000 }),
  }),
});

/** Returns the forwarded lines with their times, for output that arrives in chunks at given times. */
function forwardedOf(bytes: Buffer, chunks: readonly { length: number; afterMs: number }[], limits: OutputLimits) {
  const clock = new SteppedClock();
  const forwarded: { readonly line: string; readonly atMs: number }[] = [];
  const lines = new OutputLines(clock, (line) => forwarded.push({ line, atMs: clock.epochMs() }), limits);
  let start = 0;
  for (const { length, afterMs } of chunks) {
    lines.push(bytes.subarray(start, start + length));
    start += length;
    clock.advance(afterMs);
  }
  lines.push(bytes.subarray(start));
  const { tail } = lines;
  lines.end();
  return { forwarded, tail };
}

const segments = fc.array(fc.record({ length: fc.nat(300), afterMs: fc.nat(1500) }), { maxLength: 20 });

test("property: every line is forwarded in order or counted in its place, and the last lines are kept", () => {
  fc.assert(
    fc.property(texts, segments, limitsOf, (printed, inPieces, limits) => {
      const { forwarded, tail } = forwardedOf(
        Buffer.from(printed.map((text) => `${text}\n`).join("")),
        inPieces,
        limits,
      );
      const unlimited = forwardedOf(Buffer.from(`${printed.join("\n")}\n`), [], { ...limits, rate: null });
      const expected = unlimited.forwarded.map(({ line }) => line);
      const sources = printed.filter((text) => text.trim() !== "");
      assert.equal(expected.length, sources.length);
      let at = 0;
      for (const { line } of forwarded) {
        const [, lineCount, byteCount] = notice.exec(line) ?? [];
        if (lineCount === undefined) assert.equal(line, expected[at++]);
        else {
          const left = sources.slice(at, (at += Number(lineCount)));
          assert.equal(
            left.reduce((sum, text) => sum + text.length, 0),
            Number(byteCount),
          );
        }
      }
      assert.equal(at, expected.length);
      assert.deepEqual(tail, expected.slice(-limits.tailLines));
    }),
  );
});

test("property: no period forwards more than the burst plus the rate, and one notice a second", () => {
  fc.assert(
    fc.property(texts, segments, limitsOf, (printed, inPieces, limits) => {
      const flood = Buffer.from(`${printed.join("\n")}\n`.repeat(5));
      const { forwarded } = forwardedOf(flood, inPieces, limits);
      for (const [first, { atMs: fromMs }] of forwarded.entries()) {
        let cost = 0;
        let noticeCount = 0;
        for (const { line, atMs } of forwarded.slice(first)) {
          if (notice.test(line)) noticeCount++;
          else cost += lineCostBytes + Buffer.byteLength(line.replace(/ \.\.\. \(\d+ bytes cut\)$/, "").trimEnd());
          const seconds = (atMs - fromMs) / 1000;
          assert.ok(cost <= limits.rate.burstBytesMax + limits.rate.bytesPerSecondMax * seconds + 0.001, line);
          // The end of the output reports the last omitted lines at once, even within the same second.
          assert.ok(noticeCount <= seconds + 2);
        }
      }
    }),
  );
});

test("a line that arrives in chunks equals the line in one chunk", () => {
  const bytes = Buffer.from(`${"héllo wörld ".repeat(2000)}\nshort\n\nüber\n`);
  const { forwarded } = forwardedOf(bytes, [], defaultOutputLimits);
  fc.assert(
    fc.property(fc.array(fc.record({ length: fc.nat(5000), afterMs: fc.constant(0) })), (inPieces) => {
      assert.deepEqual(forwardedOf(bytes, inPieces, defaultOutputLimits).forwarded, forwarded);
    }),
  );
});
