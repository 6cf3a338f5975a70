import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import assert from "node:assert/strict";
import { releaseResponse, type InferenceRequest } from "../inference/index.ts";
import {
  bytesOf,
  counts,
  hold,
  inputOf,
  load,
  request,
  streamed,
  failsWith,
  withInputs,
  type Check,
} from "./contract-fixtures.ts";

/** Contract tests of requests to models with one response for each request. */
export function inference(check: Check): void {
  check(
    "a response has the requested outputs, and all memory is free when request and response are released",
    async (engine) => {
      await load(engine, "echo");
      using model = hold(engine, "echo");
      for (const [requestedOutputs, names] of [
        [null, ["Y", "Z"]],
        [["Z"], ["Z"]],
      ] as const) {
        const response = await model.infer(request(model, "echo", [1, 2], { requestedOutputs }));
        assert.deepEqual([response.modelName, response.modelVersion], ["echo", "1"]);
        assert.deepEqual(response.outputs.map((output) => output.name).sort(), names);
        for (const { shape, data } of response.outputs)
          assert.deepEqual(
            [shape, [...new Int32Array(data.slice().buffer)]],
            [
              [1, 2],
              [1, 2],
            ],
          );
        releaseResponse(response);
        assert.equal(model.arena?.usedBytes, 0);
      }
    },
  );

  for (const [what, change, message] of refusals)
    check(`${what} is rejected with Triton's text, and the inputs are released`, async (engine) => {
      await load(engine, "echo");
      using model = hold(engine, "echo");
      await assert.rejects(model.infer(change(request(model, "echo", [1, 2]))), failsWith("INVALID_ARG", message));
      assert.equal(model.arena?.usedBytes, 0);
    });

  check("the count and the lengths of strings are checked", async (engine) => {
    await load(engine, "words");
    using model = hold(engine, "words");
    const words = (bytes: readonly number[]) => {
      const input = inputOf(model, Uint8Array.from(bytes), { datatype: "BYTES", shape: [2] });
      return model.infer({ ...request(model, "words", []), inputs: [input] });
    };
    releaseResponse(await words([1, 0, 0, 0, 65, 0, 0, 0, 0]));
    await assert.rejects(
      words([1, 0, 0, 0, 65]),
      failsWith(
        "INVALID_ARG",
        "[request id: <id_unknown>] expected 2 string elements for inference input 'X' for model 'words', got 1",
      ),
    );
    await assert.rejects(
      words([9, 0, 0, 0, 65]),
      failsWith("INVALID_ARG", /^incomplete string data for inference input 'X'/),
    );
    assert.equal(model.arena?.usedBytes, 0);
  });

  check("an exception of a model is the request's error, and the inputs are released", async (engine) => {
    await load(engine, "failing");
    using model = hold(engine, "failing");
    await assert.rejects(model.infer(request(model, "failing", [1])), failsWith("INTERNAL", "boom"));
    assert.equal(model.arena?.usedBytes, 0);
  });

  check("an aborted request is cancelled, before it runs and while it runs", async (engine, subject) => {
    await load(engine, "failing");
    using model = hold(engine, "failing");
    const removed = { ...request(model, "failing", [1]), signal: AbortSignal.abort() };
    await assert.rejects(model.infer(removed), { code: "CANCELLED" });
    const pending = Promise.withResolvers<void>();
    subject.holdFailing(pending.promise);
    const disconnect = new AbortController();
    const result = model.infer({ ...request(model, "failing", [1]), signal: disconnect.signal });
    const cancelled = assert.rejects(result, { code: "CANCELLED" });
    disconnect.abort();
    await cancelled;
    assert.notEqual(model.arena?.usedBytes, 0, "the model still reads its input");
    pending.resolve();
    await eventually(() => model.arena?.usedBytes === 0);
  });

  check("statistics count successes and failures, and no rejected requests", async (engine) => {
    await load(engine, "echo");
    await load(engine, "failing");
    using model = hold(engine, "echo");
    using failing = hold(engine, "failing");
    const two = inputOf(model, bytesOf([1, 2]), { shape: [2, 1] });
    releaseResponse(await model.infer({ ...request(model, "echo", []), inputs: [two] }));
    releaseResponse(await model.infer(request(model, "echo", [1])));
    await assert.rejects(model.infer({ ...request(model, "echo", [1]), requestedOutputs: ["W"] }));
    await assert.rejects(failing.infer(request(failing, "failing", [1])));
    assert.deepEqual(counts(engine, "echo"), [["echo", "1", 3, 2, 2, 0]]);
    assert.deepEqual(
      counts(engine, "failing").map((row) => row.slice(4)),
      [[0, 1]],
    );
    assert.deepEqual(new Set(counts(engine, "").map(([modelName]) => modelName)), new Set(["echo", "failing"]));
    const [row] = engine.statistics("echo", "1");
    assert.deepEqual(
      row?.batches.map((batch) => [batch.batchSize, batch.computeInfer.count]),
      [
        [1, 1],
        [2, 1],
      ],
    );
    const unknown = failsWith("INVALID_ARG", "requested model 'nobody' is not available");
    assert.throws(() => engine.statistics("nobody", ""), unknown);
    const absent = failsWith("INVALID_ARG", "requested model version is not available for model 'echo'");
    assert.throws(() => engine.statistics("echo", "2"), absent);
  });
}

/** Contract tests of requests to decoupled models. */
export function decoupledModels(check: Check): void {
  check("a decoupled model sends its responses to the sink in order and marks the final one", async (engine) => {
    await load(engine, "counting");
    using model = hold(engine, "counting");
    assert.equal(model.view.config.decoupled, true);
    assert.deepEqual(await streamed(model, request(model, "counting", [5, 6, 7])), ["5", "6", "7", "final"]);
    assert.deepEqual(await streamed(model, request(model, "counting", [])), ["final"]);
    assert.equal(model.arena?.usedBytes, 0);
  });

  check("a rejection is the stream's only response, and the inputs are released", async (engine) => {
    await load(engine, "counting");
    using model = hold(engine, "counting");
    const wrong = { ...request(model, "counting", [1]), requestedOutputs: ["W"] };
    const refusal = "unexpected inference output 'W' for model 'counting'";
    assert.deepEqual(await streamed(model, wrong), [`INVALID_ARG ${refusal} final`]);
    assert.equal(model.arena?.usedBytes, 0);
  });

  check("a decoupled model rejects calls for a single response", async (engine) => {
    await load(engine, "counting");
    using model = hold(engine, "counting");
    await assert.rejects(model.infer(request(model, "counting", [1])), { code: "UNSUPPORTED" });
    assert.equal(model.arena?.usedBytes, 0);
  });
}

/** Invalid changes of a valid request to the model `echo` (one row of two numbers), with the error that each one causes. */
const refusals: readonly (readonly [string, (good: InferenceRequest) => InferenceRequest, string])[] = [
  [
    "an unknown output",
    (good) => ({ ...good, requestedOutputs: ["Y", "W"] }),
    "unexpected inference output 'W' for model 'echo'",
  ],
  [
    "a missing input",
    (good) => withInputs(good, []),
    "[request id: <id_unknown>] expected 1 inputs but got 0 inputs for model 'echo'. Got input(s) [], but missing required input(s) ['X']. Please provide all required input(s).",
  ],
  [
    "an unknown input",
    (good) => withInputs(good, [{ ...good.inputs[0]!, name: "W" }]),
    "unexpected inference input 'W' for model 'echo'",
  ],
  [
    "a repeated input",
    (good) => withInputs({ ...good, id: "r1" }, [good.inputs[0]!, { ...good.inputs[0]!, block: null }]),
    "[request id: r1] input 'X' already exists in request",
  ],
  [
    "another datatype",
    (good) => withInputs(good, [{ ...good.inputs[0]!, datatype: "FP32" }]),
    "[request id: <id_unknown>] inference input 'X' data-type is 'FP32', but model 'echo' expects 'INT32'",
  ],
  [
    "a number of bytes that differs from the shape",
    (good) => withInputs(good, [{ ...good.inputs[0]!, shape: [1, 3] }]),
    "[request id: <id_unknown>] input byte size mismatch for input 'X' for model 'echo'. Expected 12, got 8",
  ],
  [
    "a shape without a batch",
    (good) => withInputs(good, [{ ...good.inputs[0]!, shape: [] }]),
    "[request id: <id_unknown>] input 'X' has no shape but model requires batch dimension for 'echo'",
  ],
  [
    "a batch larger than the maximum",
    (good) => withInputs(good, [{ ...good.inputs[0]!, shape: [5, 2] }]),
    "[request id: <id_unknown>] inference request batch-size must be <= 4 for 'echo'",
  ],
];
