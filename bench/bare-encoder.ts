/**
 * ONNX Runtime's C API in a loop with nothing around it, in a process of its own:
 *   node bench/bare-encoder.ts <model.onnx> <batch> <tokens> <milliseconds>
 * Prints milliseconds per run.
 */
import { availableParallelism } from "node:os";
import { DirectRuns } from "../packages/server/src/native/direct-runs-fixture.ts";
import { onnxRuntimeLibrary, openOnnxRuntime, plainSession } from "@galatea/server/native";

const [modelPath = "", batchText = "", tokensText = "", durationText = ""] = process.argv.slice(2);
const [batch, tokens, durationMs] = [Number(batchText), Number(tokensText), Number(durationText)];

await using runtime = openOnnxRuntime({
  libraryPath: onnxRuntimeLibrary(),
  intraOpThreadCount: availableParallelism(),
  ownThreadCountMax: 0,
  interOpThreadCount: 0,
  spin: true,
});
await using session = await runtime.openSession({
  modelPath,
  ...plainSession,
});
const ids = new BigInt64Array(batch * tokens).fill(1996n);
const mask = new BigInt64Array(batch * tokens).fill(1n);
const runs = new DirectRuns(runtime, session);
const run = {
  inputs: session.inputs.map(({ name }, index) => ({
    index,
    shape: [batch, tokens],
    data: new Uint8Array((name === "input_ids" ? ids : mask).buffer),
  })),
  outputs: [{ index: 0, target: { shape: [batch, tokens, 384], data: new Uint8Array(batch * tokens * 384 * 4) } }],
  place: (): Uint8Array => {
    throw new Error("the output has a place");
  },
};
for (let warm = 0; warm < 20; warm++) runs.run(run);
const startMs = performance.now();
let runCount = 0;
for (; performance.now() - startMs < durationMs; runCount++) runs.run(run);
console.log((performance.now() - startMs) / runCount);
