import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { seededRandom } from "../conformance/seeded-random.ts";
import { requestBytes, runLoad } from "./load.ts";
import { judgeMeasure, median } from "./row.ts";
import { idealLruHitRate, zipf } from "./zipf.ts";

async function withServer(status: number, body: Buffer, work: (port: number) => Promise<void>): Promise<void> {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.writeHead(status, { "content-length": body.length });
      response.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await work((server.address() as AddressInfo).port);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("responses larger than the read buffer are counted once", async () => {
  await withServer(200, Buffer.alloc(700_001, 1), async (port) => {
    const request = requestBytes("/", Buffer.from("{}"));
    const result = await runLoad({ port, request, clients: 2, durationMs: 1000, warmUpMs: 20 });
    assert.ok(result.responses > 2);
    assert.ok(result.p50Us > 0 && result.p99Us >= result.p50Us);
  });
});

test("an error response ends the load", async () => {
  await withServer(503, Buffer.from("no"), async (port) => {
    const request = requestBytes("/", Buffer.from("{}"));
    await assert.rejects(
      runLoad({ port, request, clients: 1, durationMs: 100, warmUpMs: 0 }),
      /refused: HTTP\/1.1 503/,
    );
  });
});

test("the ratio is the median of the rounds' ratios, not the ratio of medians", () => {
  const verdict = judgeMeasure({
    what: "x",
    unit: "/s",
    ours: [10, 40, 30],
    oracle: [10, 10, 30],
    goal: { kind: "at least", of: "ratio", value: 1 },
  });
  assert.equal(verdict.ratioMedian, 1);
  assert.equal(verdict.oursMedian, 30);
  assert.equal(verdict.reached, true);
  assert.equal(median([4, 1, 3, 2]), 2.5);
});

test("Zipf's first number occurs as often as the harmonic sum predicts, and the same seed gives the same sequence", () => {
  const draws = 20_000;
  const next = zipf(100, 1, seededRandom(3));
  const again = zipf(100, 1, seededRandom(3));
  let first = 0;
  for (let draw = 0; draw < draws; draw++) {
    const value = next();
    assert.equal(value, again());
    assert.ok(value >= 0 && value < 100);
    if (value === 0) first++;
  }
  const expected = 1 / Array.from({ length: 100 }, (_, index) => 1 / (index + 1)).reduce((sum, term) => sum + term);
  assert.ok(Math.abs(first / draws - expected) < 0.02);
});

test("an ideal LRU cache hits the objects that it holds", () => {
  assert.equal(idealLruHitRate([1, 2, 1, 3, 2, 1], 2), 1 / 6);
  assert.equal(idealLruHitRate([1, 2, 1, 3, 2, 1], 3), 3 / 6);
});
