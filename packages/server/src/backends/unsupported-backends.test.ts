import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { backendRemedy, planRemedy } from "./unsupported-backends.ts";

test("a model of an unsupported Triton backend is rejected with what to do instead", async () => {
  assert.match((await backendRemedy("openvino", []))!, /^OpenVINO's format is not served: convert the model to ONNX /);
  assert.match((await backendRemedy("mxnet", []))!, /^MXNet is not served/);
  assert.match(
    (await backendRemedy("vllm", []))!,
    /^vLLM is not served .* as --backend-directory, or load its engine /,
  );
  assert.equal(await backendRemedy("pythn", []), null);
  assert.equal(await backendRemedy("constructor", []), null);
});

test("a model with its backend's shared library is rejected: native backends run in Triton only", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "galatea-native-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  await writeFile(join(directory, "libtriton_mine.so"), "");
  assert.match(
    (await backendRemedy("mine", [join(directory, "1"), directory]))!,
    /^'libtriton_mine.so' is a library for Triton's own process, /,
  );
});

test("a TensorRT plan is rejected with what the machine lacks and what to serve instead", async () => {
  assert.equal(
    planRemedy(["an NVIDIA GPU (/dev/nvidiactl)", "TensorRT (libnvinfer.so)"]),
    "TensorRT plans run on an NVIDIA GPU, and this machine lacks an NVIDIA GPU (/dev/nvidiactl), TensorRT (libnvinfer.so). Serve the ONNX " +
      "model that the plan was built from, with backend 'onnxruntime'; `galatea convert` creates one from an encoder's weights",
  );
  assert.match(
    planRemedy([]),
    /^TensorRT plans run on an NVIDIA GPU, and this server has access to none\. Serve the ONNX model /,
  );
  assert.match((await backendRemedy("tensorrt", []))!, /^TensorRT plans run on an NVIDIA GPU/);
});
