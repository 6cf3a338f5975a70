import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "@galatea/base";
import { InMemoryMetricStore } from "@galatea/base/metrics";
import { DocumentMemory } from "../src/records/index.ts";
import { TrafficFixture, until } from "./traffic-fixture.ts";

test("endpoints with requests have a metric of requests in flight with a period of ten seconds", async () => {
  const series = new InMemoryMetricStore({ clock: systemClock, seriesMax: 1000, bytesMax: 1e7 });
  await using bench = await TrafficFixture.open(new DocumentMemory(), series);
  await bench.deploy("asked", [{ name: "v" }]);
  await bench.deploy("quiet", [{ name: "v" }]);
  const { end } = bench.clients("asked", 4);
  const points = (endpoint: string) => {
    const dimensions = [
      { name: "EndpointName", value: endpoint },
      { name: "VariantName", value: "v" },
    ];
    const endMs = Math.ceil((Date.now() + 1) / 10_000) * 10_000;
    const query = { startMs: endMs - 120_000, endMs, periodMs: 10_000, unit: "Count" };
    return series.query({ namespace: "AWS/SageMaker", metricName: "ConcurrentRequestsPerModel", dimensions }, query);
  };
  // A sample may be taken before the first request or between two requests.
  await until("somebody has looked while requests were in flight", async () =>
    (await points("asked")).some(({ maximum }) => maximum >= 1),
  );
  await end();
  for (const point of await points("asked")) assert.ok(point.maximum <= 4, JSON.stringify(point));
  assert.deepEqual(await points("quiet"), []);
});
