/** Tests of a damaged database of metrics: it must open, the loss must be logged, and new metrics must be stored. */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { DatabaseSync } from "node:sqlite";
import * as fc from "fast-check";
import { createLogger, systemClock } from "@galatea/base";
import type { MetricStore } from "@galatea/base/metrics";
import { copyDatabase } from "./snapshot-files.ts";
import { openMetrics } from "./sqlite-metrics.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-metric-damage-"));
after(() => rmSync(root, { recursive: true, force: true }));

const minute = 60_000;
const day = 1440 * minute;
const start = Date.UTC(2026, 10, 21, 12);
const minuteCount = 60;
const minutesPerLife = 10;
const seriesCount = 12;
const sound = join(root, "sound");

/** Simulates one run of a platform's metrics at a fixed time. Resolves with the logged lines. */
async function live(
  directory: string,
  nowMs: number,
  work: (metrics: MetricStore) => void | Promise<void>,
): Promise<readonly string[]> {
  const reported: string[] = [];
  const logger = createLogger((_, message, fields) => reported.push(`${message} ${JSON.stringify(fields)}`));
  const clock = { epochMs: () => nowMs, monotonicNs: () => nowMs * 1e6, timer: () => ({ [Symbol.dispose]() {} }) };
  const path = join(directory, "metrics.db");
  await using metrics = await openMetrics({
    path,
    snapshots: {
      folder: join(directory, "snapshots"),
      daysKept: 0,
      everyMs: day,
      freeBytes: () => Infinity,
      clock: systemClock,
    },
    seriesMax: 100,
    bytesMax: 1e8,
    clock,
    logger,
  });
  await work(metrics);
  return reported;
}

const keyOf = (index: number) => ({
  namespace: "Galatea/Models",
  metricName: `m${index}`,
  dimensions: [{ name: "EndpointName", value: `endpoint-${index}` }],
  unit: "None",
});

function record(metrics: MetricStore, timestampMs: number): void {
  for (let index = 0; index < seriesCount; index += 1) {
    metrics.record(keyOf(index), { value: index, count: 1 }, { timestampMs, resolutionMs: minute });
  }
}

async function sampleCount(metrics: MetricStore): Promise<number> {
  const query = { startMs: start, endMs: start + day, periodMs: day, unit: null };
  let count = 0;
  for (let index = 0; index < seriesCount; index += 1)
    for (const point of await metrics.query(keyOf(index), query)) count += point.sampleCount;
  return count;
}

before(async () => {
  mkdirSync(join(sound, "snapshots"), { recursive: true });
  for (let at = 0; at < minuteCount; at += minutesPerLife) {
    const nowMs = start + (at + minutesPerLife) * minute;
    const reported = await live(sound, nowMs, (metrics) => {
      for (let since = 0; since < minutesPerLife; since += 1) record(metrics, start + (at + since) * minute);
    });
    assert.deepEqual(reported, []);
  }
  copyDatabase(join(sound, "metrics.db"), join(sound, "snapshots", "metrics-20261121T130000Z.db"));
});

/** Returns a damaged copy of the undamaged directory. */
function damaged(change: (directory: string) => void): string {
  const directory = mkdtempSync(join(root, "damaged-"));
  cpSync(sound, directory, { recursive: true });
  change(directory);
  return directory;
}

/**
 * Runs a platform on a damaged directory. Resolves with the log lines of its start and the number of remaining samples.
 */
async function goesOn(directory: string): Promise<{ readonly reported: readonly string[]; readonly left: number }> {
  const nowMs = start + minuteCount * minute;
  let [left, since] = [-1, -1];
  const told = await live(directory, nowMs, async (metrics) => {
    left = await sampleCount(metrics);
    record(metrics, nowMs);
  });
  // At this time, minutes have been merged and their blocks deleted.
  const laterMs = start + 20 * day;
  const again = await live(directory, laterMs, async (metrics) => {
    since = await sampleCount(metrics);
  });
  assert.equal(since, left + seriesCount, "the remaining samples and the newer ones");
  const isAboutUnread = (line: string) => /cannot be read and is left out/.test(line);
  assert.deepEqual(
    again.filter((line) => !isAboutUnread(line)),
    [],
    `told before: ${told.join("\n")}`,
  );
  using database = new DatabaseSync(join(directory, "metrics.db"), { readOnly: true });
  assert.deepEqual(database.prepare("SELECT id FROM metric_block WHERE period_ms = ?").all(minute), []);
  rmSync(directory, { recursive: true });
  return { reported: told, left };
}

test("undamaged metrics are all there, and nothing is logged", async () => {
  assert.deepEqual(await goesOn(damaged(() => {})), { reported: [], left: minuteCount * seriesCount });
});

test("a damaged index of the metrics is detected at the start, and the snapshot's metrics are used", async () => {
  const directory = damaged((copy) => {
    const path = join(copy, "metrics.db");
    const bytes = readFileSync(path);
    using database = new DatabaseSync(path, { readOnly: true });
    const requested = database.prepare("SELECT rootpage FROM sqlite_master WHERE name = 'metric_block_by_time'").get();
    const pageBytes = Number(database.prepare("PRAGMA page_size").get()?.["page_size"]);
    // The last byte of the page belongs to the first index entry: the length of its block.
    bytes[Number(requested?.["rootpage"]) * pageBytes - 1]! ^= 1;
    writeFileSync(path, bytes);
  });
  const { reported: told, left } = await goesOn(directory);
  assert.equal(left, minuteCount * seriesCount);
  assert.equal(told.length, 1);
  assert.match(told[0] ?? "", /^a database is damaged: it continues from its newest snapshot.*metric_block_by_time/);
});

test("points of metrics whose names are lost are never assigned to another metric", async () => {
  const directory = damaged((copy) => {
    using database = new DatabaseSync(join(copy, "metrics.db"));
    // Simulates a repaired table of which no page was readable.
    database.exec("DELETE FROM metric_series; DELETE FROM sqlite_sequence");
  });
  const { left } = await goesOn(directory);
  assert.equal(left, 0);
});

test("a metric whose number was changed by a flipped bit is left out and logged", async () => {
  const directory = damaged((copy) => {
    using database = new DatabaseSync(join(copy, "metrics.db"));
    database.exec("UPDATE metric_series SET number = 1000 WHERE number = 3");
  });
  const { reported: told, left } = await goesOn(directory);
  assert.equal(left, minuteCount * (seriesCount - 1));
  assert.deepEqual(told, [
    'a metric cannot be read and is left out {"number":1000,"error":"RangeError: it is number 3"}',
  ]);
});

test("metrics files that are truncated, overwritten or have flipped bits open and accept writes", async () => {
  const changes: Record<string, (bytes: Buffer, at: number) => Buffer> = {
    "cut off": (bytes, at) => bytes.subarray(0, at),
    "a bit": (bytes, at) => {
      bytes[at]! ^= 1 << (at & 7);
      return bytes;
    },
    "a page of zeros": (bytes, at) => {
      bytes.subarray(at - (at % 4096), at - (at % 4096) + 4096).fill(0);
      return bytes;
    },
    "a page of garbage": (bytes, at) => {
      bytes.subarray(at - (at % 4096), at - (at % 4096) + 4096).fill("garbage");
      return bytes;
    },
    "nothing but garbage": (bytes) => bytes.fill("garbage"),
  };
  const files = readdirSync(sound).filter((name) => name.startsWith("metrics.db"));
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...files, "metrics.db"),
      fc.constantFrom(...Object.keys(changes)),
      fc.nat({ max: 2 ** 30 }),
      async (file, name, chosen) => {
        const directory = damaged((copy) => {
          const bytes = readFileSync(join(copy, file));
          if (bytes.length === 0) return;
          writeFileSync(join(copy, file), changes[name]!(bytes, chosen % bytes.length));
        });
        const { reported: told, left } = await goesOn(directory);
        if (left < minuteCount * seriesCount) assert.notDeepEqual(told, [], `${file}: ${name} at ${chosen}`);
      },
    ),
    { numRuns: 12, seed: 20_261_123, endOnFailure: true },
  );
});
