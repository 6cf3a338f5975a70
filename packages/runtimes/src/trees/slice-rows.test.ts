import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { RowSegment } from "./tree-worker.ts";
import { type RequestRows, sliceRows, sliceStepsMax } from "./slice-rows.ts";

const [rowBytes, predictionBytes, contributionBytes] = [12, 8, 32];

test("sliceRows puts each row into exactly one slice, and no slice exceeds the limit of steps", () => {
  const counts = fc.array(fc.nat(3000), { maxLength: 20 });
  fc.assert(
    fc.property(counts, fc.integer({ min: 1, max: 2 ** 22 }), (rowCounts, rowSteps) => {
      let [rowsAt, predictionsAt] = [1000, 90_000_000];
      const requests = rowCounts.map((rowCount): RequestRows => {
        const placed = {
          rowsAt,
          rowCount,
          predictionsAt,
          contributionsAt: rowCount % 2 === 0 ? 4 * predictionsAt : null,
        };
        const request = { ...placed, rowBytes, predictionBytes, contributionBytes };
        rowsAt += rowCount * rowBytes + 64;
        predictionsAt += rowCount * predictionBytes;
        return request;
      });
      const slices = sliceRows(requests, rowSteps);
      const rowsOf = (chunks: readonly RowSegment[]) =>
        chunks.flatMap((chunk) =>
          Array.from({ length: chunk.rowCount }, (_, row) => [
            chunk.rowsAt + row * rowBytes,
            chunk.predictionsAt! + row * predictionBytes,
            chunk.contributionsAt === null ? null : chunk.contributionsAt + row * contributionBytes,
          ]),
        );
      assert.deepEqual(rowsOf(slices.flat()), rowsOf(requests));
      for (const slice of slices) {
        const rowCount = rowsOf(slice).length;
        assert.ok(rowCount > 0 && (rowCount <= 8 || rowCount * rowSteps <= sliceStepsMax), `${rowCount} rows`);
      }
    }),
    { numRuns: 50 },
  );
});
