import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { ResponseSink } from "../../inference/index.ts";
import { floats, model, oneInOneOut, only, openFixture, request, type PythonFixture } from "./python-fixture.ts";

let fixture: PythonFixture;

before(async () => {
  fixture = await openFixture({});
});

after(() => fixture[Symbol.asyncDispose]());

test("the time to encode a decoupled model's responses is output time, and its own work is not", async () => {
  const body = model(`import time
for r in requests:
    sender = r.get_response_sender()
    time.sleep(0.05)
    for _ in range(3): sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.ones(4, np.float32))]))
    sender.send(flags=1)`);
  const decoupled = oneInOneOut("TYPE_FP32", "model_transaction_policy { decoupled: true }");
  await using loaded = await fixture.load("times", body, decoupled);
  const responseSink: ResponseSink = { respond: (_outcome, _isFinal, consumed) => consumed() };
  const { computeInferNs, computeOutputNs } = await only(loaded).execute([
    request([floats("IN", [1])], { responseSink }),
  ]);
  assert.ok(computeOutputNs > 0);
  assert.ok(computeInferNs > 50e6);
});
