/** Models of the backend `pytorch` on GPUs that the CPU simulates: `pytorch_gpus.py`. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureFramework } from "../environments/index.ts";

test("a PyTorch module and its inputs are moved to the GPU of their instance, and a missing GPU fails the load", async () => {
  const { python } = await ensureFramework("pytorch");
  const program = fileURLToPath(new URL("pytorch_gpus.py", import.meta.url));
  const { stdout } = await promisify(execFile)(python, [program]);
  const said = JSON.parse(stdout) as Record<string, unknown>;
  const refusal = (gpu: number, found: number) =>
    new RegExp(
      `^unable to load model 'm': its instance is placed on GPU ${gpu}, and PyTorch \\S+ finds ${found} GPUs$`,
    );
  assert.match(said["without"] as string, refusal(0, 0));
  assert.match(said["third"] as string, refusal(2, 2));
  for (const file of ["model.pt", "exported.pt2", "eager.py"])
    assert.deepEqual(said[file], { answer: [[3, 6]], input_is_moved: true }, file);
});
