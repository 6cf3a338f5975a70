import assert from "node:assert/strict";
import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { formatLogLine, parseLogLines, type LogLine } from "./log-lines.ts";
import { readLinesBefore, readLinesFrom, SegmentFile } from "./log-chunks.ts";

const startMs = Date.UTC(2026, 10, 22);
const chunkBytes = 256 * 1024;

/**
 * Writes a file of several chunks with short, empty and unparsable lines, lines longer than a chunk, and an unfinished
 * last line.
 */
async function written() {
  const directory = await mkdtemp(join(tmpdir(), "chunks-"));
  const lengths = Array.from({ length: 6000 }, (_, at) => (at * 7919) % 160);
  lengths[100] = 300_000;
  lengths[3000] = 700_000;
  lengths[5999] = 270_000;
  const lines = lengths.map((length, at) => formatLogLine(startMs + at, `${at} `.padEnd(length, "x")));
  lines[50] = "an unknown line\n";
  const bytes = Buffer.from(`${lines.join("")}2026-11-22T00:00:00.000Z never ended`);
  const path = join(directory, "0000000003.log");
  await writeFile(path, bytes);
  const all = [...parseLogLines(bytes, { segment: 3, offset: 0 })];
  return {
    file: new SegmentFile(3, path),
    byteLength: bytes.byteLength,
    all,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true }),
  };
}

const numbers = (lines: readonly LogLine[]) => lines.map(({ position }) => position.offset);

async function gathered(chunks: AsyncIterable<readonly LogLine[]>): Promise<readonly LogLine[]> {
  const lines: LogLine[] = [];
  for await (const chunk of chunks) lines.push(...chunk);
  return lines;
}

test("a file's lines are the same read in chunks, forward and backward, from any position", async () => {
  await using fixture = await written();
  const { file, all, byteLength } = fixture;
  assert.deepEqual(await gathered(readLinesFrom(file, 0)), all);
  assert.deepEqual(await gathered(readLinesBefore(file, null)), all.toReversed());
  const offsets = [1, all[1]?.position.offset ?? 0, chunkBytes, 2 * chunkBytes + 1, byteLength - 5, byteLength + 9];
  for (const at of [99, 100, 101, 3000, 3001, 5997]) {
    const { offset } = all[at]?.position ?? { offset: 0 };
    offsets.push(offset - 1, offset, offset + 1);
  }
  for (const offset of offsets) {
    const behind = all.filter(({ position }) => position.offset >= offset);
    const before = all.filter(({ position }) => position.offset < offset).toReversed();
    assert.deepEqual(numbers(await gathered(readLinesFrom(file, offset))), numbers(behind), `from ${offset}`);
    assert.deepEqual(numbers(await gathered(readLinesBefore(file, offset))), numbers(before), `before ${offset}`);
  }
  assert.deepEqual(await gathered(readLinesBefore(file, 0)), []);
  assert.deepEqual(await gathered(readLinesFrom(new SegmentFile(3, `${file.path}.absent`), 0)), []);
});

test("for a file of any length each parsed chunk is short, and a page reads no more than its lines", async () => {
  await using fixture = await written();
  const { file } = fixture;
  const line = formatLogLine(startMs, "y".repeat(75));
  for (let written = 0; written < 8; written += 1) await appendFile(file.path, `\n${line.repeat(10_000)}`);
  for (const chunks of [readLinesFrom(file, 0), readLinesBefore(file, null)]) {
    let most = 0;
    for await (const chunk of chunks) most = Math.max(most, chunk.length);
    assert.ok(most <= chunkBytes / 20, `${most} lines in one chunk`);
  }
  for (const chunks of [readLinesFrom(file, 0), readLinesBefore(file, null)]) {
    const { value } = await chunks.next();
    assert.ok(value !== undefined && value.length > 0);
    const offsets = numbers(value as readonly LogLine[]);
    assert.ok(Math.max(...offsets) - Math.min(...offsets) <= chunkBytes);
    await chunks.return(undefined);
  }
});
