/** A server whose creation fails and that continues with `--exit-on-error=false` responds as Triton does. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sendRequest } from "./http-client.ts";
import { writeFaultyModel } from "./faulty-model.ts";
import { openServing } from "./serving.ts";

test("with a missing repository the server starts but is not live, and serves no models of its other repository", async () => {
  await using serving = await openServing({
    flags: ["--exit-on-error=false", "--model-repository=/nowhere/models"],
    write: ({ repository }) => writeFaultyModel(repository, "good", {}),
  });
  const { httpPort, metricsPort } = serving.server;
  const status = async (path: string) => (await sendRequest(httpPort, { path })).status;
  assert.deepEqual(
    [await status("/v2/health/live"), await status("/v2/health/ready"), await status("/v2")],
    [400, 400, 200],
  );
  for (const [path, body] of [
    ["/v2/models/good"],
    ["/v2/models/good/ready"],
    ["/v2/models/good/config"],
    ["/v2/models/stats"],
    ["/v2/models/good/infer", '{"inputs":[]}'],
    ["/v2/repository/index", "{}"],
    ["/v2/repository/models/good/load", "{}"],
    ["/v2/repository/models/good/unload", "{}"],
  ] as const) {
    const response = await sendRequest(httpPort, { path, ...(body === undefined ? {} : { body }) });
    assert.deepEqual([path, response.status, response.body.toString()], [path, 503, '{"error":"Server not ready"}']);
  }
  assert.equal((await sendRequest(metricsPort, { path: "/metrics" })).status, 200);
  assert.match(
    serving.server.log(),
    /creating server: Internal - failed to stat file \/nowhere\/models: No such file or directory/,
  );
});
