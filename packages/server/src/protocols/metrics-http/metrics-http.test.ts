import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteBudget, silentLogger, systemClock } from "@galatea/base";
import { usualHttpLimits } from "../http-listener/limits-fixture.ts";
import { sendRawRequest, post } from "../raw-client.ts";
import { openMetricsHttp } from "./index.ts";

test("metrics are served only on their path, and only for GET", async () => {
  const listener = await openMetricsHttp({
    clock: systemClock,
    address: { host: "127.0.0.1", port: 0 },
    limits: usualHttpLimits,
    logger: silentLogger,
    budget: new ByteBudget(2 ** 30),
    text: () => "nv_inference_count 1\n",
  });
  const get = (path: string) => sendRawRequest(listener.port, `GET ${path} HTTP/1.1\r\n\r\n`);
  for (const path of ["/metrics", "/metrics/", "/metrics?x"]) {
    const { status, body, headers } = await get(path);
    assert.deepEqual(
      [status, body, headers.get("content-type")],
      [200, "nv_inference_count 1\n", "text/plain; charset=utf-8"],
    );
  }
  assert.equal((await get("/v2/health/ready")).status, 404);
  assert.equal((await sendRawRequest(listener.port, post("/metrics", ""))).body, '{"error":"Method Not Allowed"}');
  await listener.close(AbortSignal.abort());
});
