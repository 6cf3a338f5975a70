/** Pipelines of the backend `dali` on GPUs, with simulated DALI pipelines: `dali_gpus.py`. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureFramework } from "../environments/index.ts";

/** The arguments with which the simulated pipeline was deserialized. */
interface Given {
  readonly device: number;
  readonly operators: readonly (readonly [name: string, device: string])[];
}

interface Said {
  readonly without: string;
  readonly gpu_only_on_cpu: string;
  readonly gpu_only: Given;
  readonly GPU: { readonly answer: readonly number[]; readonly given: Given };
  readonly CPU: { readonly answer: readonly number[]; readonly given: Given };
}

test("a DALI pipeline on a GPU instance keeps its GPU operators, and its outputs are copied from the GPU", async () => {
  const { python } = await ensureFramework("dali");
  const program = fileURLToPath(new URL("dali_gpus.py", import.meta.url));
  const { stdout } = await promisify(execFile)(python, [program]);
  const said = JSON.parse(stdout) as Said;
  assert.match(said.without, /^Error while instantiating DALI pipeline: .*GPU/s);
  assert.match(said.gpu_only_on_cpu, /has no implementation for the CPU, on which pipelines run$/);
  const devices = (operators: Given["operators"]) => new Set(operators.map(([, device]) => device));
  assert.deepEqual([said.GPU.answer, said.GPU.given.device], [[6, 8], 1]);
  assert.ok(devices(said.GPU.given.operators).has("gpu"));
  const cpuOnly = -99999;
  assert.deepEqual([said.CPU.answer, said.CPU.given.device], [[6, 8], cpuOnly]);
  assert.deepEqual([...devices(said.CPU.given.operators)], ["cpu"]);
  assert.ok(devices(said.gpu_only.operators).has("gpu"));
});
