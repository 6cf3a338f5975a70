import assert from "node:assert/strict";
import * as fc from "fast-check";
import { encodeOnnx, type OnnxModel } from "@galatea/server/onnx-file";
import { sendRequest, infer, load, unload } from "../../faults/http-client.ts";
import { completeModel, dividing, dividingAtLoad, harmless, slow } from "../../faults/onnx-models.ts";
import type { Serving } from "../../faults/serving.ts";
import { mutated } from "../mutations.ts";
import { attackServer } from "../served.ts";
import type { FuzzTarget } from "../target.ts";

const fixed = (model: Partial<OnnxModel>) =>
  encodeOnnx(completeModel({ ...model, inputs: model.inputs!.map((each) => ({ ...each, dims: [2] })) }));
const corpus = [fixed(harmless), fixed(dividing), fixed(dividingAtLoad), encodeOnnx(completeModel(slow(2)))];
const words = ["Div", "Neg", "MatMul", "Identity", "x", "y", "ai.onnx", "com.microsoft", "\0", "../1/model.onnx"];

const requested = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [2], data: [1, 2] }] });
const statuses: ReadonlySet<number> = new Set([200, 400, 404, 500, 503]);

/** Files that ONNX Runtime loads and runs in their own process: the server and its other models continue. */
export const onnxFile: FuzzTarget<Buffer> = {
  name: "onnx-file",
  about: "ONNX files, loaded and run by a server",
  share: 0.002,
  inputs: mutated(fc.constantFrom(...corpus), words),
  open: () => attackServer(attempt, { flags: ["--onnx-run-deadline-secs=5"] }),
};

async function attempt(bytes: Buffer, { server }: Serving): Promise<boolean> {
  const { httpPort } = server;
  const parameters = {
    config: JSON.stringify({ backend: "onnxruntime", instance_group: [{ count: 1 }] }),
    "file:1/model.onnx": bytes.toString("base64"),
  };
  const loaded = await load(httpPort, "fuzzed", { parameters });
  assert.ok(statuses.has(loaded.status), `load: ${loaded.status} ${loaded.body.toString()}`);
  const isLoaded = loaded.status === 200;
  if (isLoaded) {
    const response = await infer(httpPort, "fuzzed", requested);
    assert.ok(statuses.has(response.status), `infer: ${response.status} ${response.body.toString()}`);
    assert.equal((await unload(httpPort, "fuzzed")).status, 200);
  }
  const echoed = await infer(httpPort, "echo", requested.replace('"x"', '"IN"'));
  assert.equal(echoed.status, 200, echoed.body.toString());
  assert.equal((await sendRequest(httpPort, { path: "/v2/health/live" })).status, 200);
  return isLoaded;
}
