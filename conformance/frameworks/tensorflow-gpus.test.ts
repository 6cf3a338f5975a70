/** Models of the backend `tensorflow` on simulated GPUs: `tensorflow_gpus.py`. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureFramework } from "../environments/index.ts";

test("a TensorFlow session sees only the GPU of its instance, and a missing GPU fails the load", async () => {
  const { python } = await ensureFramework("tensorflow");
  const program = fileURLToPath(new URL("tensorflow_gpus.py", import.meta.url));
  const { stdout } = await promisify(execFile)(python, [program]);
  const said = JSON.parse(stdout) as Record<string, unknown>;
  const refusal = (gpu: number, found: number) =>
    new RegExp(
      `^unable to load model 'm': its instance is placed on GPU ${gpu}, and TensorFlow \\S+ finds ${found} GPUs\\. ` +
        "One with CUDA is set up by: galatea model add tensorflow-gpu$",
    );
  assert.match(said["without"] as string, refusal(0, 0));
  assert.match(said["third"] as string, refusal(2, 2));
  const result = [3, 6];
  const onCpu = { visible: "", grows: false, fraction: 0, gpus: 0, mixed: 0, constants_stay: false };
  assert.deepEqual(said["cpu"], { answer: result, ...onCpu });
  const onGpu = { grows: true, fraction: 0, gpus: -1, mixed: 0, constants_stay: true };
  assert.deepEqual(said["second"], { answer: result, ...onGpu, visible: "1", mixed: 1 });
  assert.deepEqual(said["quarter"], { answer: result, ...onGpu, visible: "0", grows: false, fraction: 0.25 });
  assert.match((said["logged"] as string[]).join("\n"), /'gpu_io' has no effect/);
  assert.match(said["tensorrt"] as string, /^GPU Execution Accelerator 'tensorrt' is requested for model 'm'/);
  assert.equal(said["abacus"], "unknown Execution Accelerator 'abacus' is requested");
  assert.match(said["much"] as string, /gpu-memory-fraction must be from 0 to 1, found 'much'$/);
});
