import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { gaugeProblems, parseSmi } from "./gauges.ts";

const smi = "GPU-1, 81559, 1024, 700.00\nGPU-2, 81559, 0, [N/A]\n";

const gauges = (uuid: string, used: number) => `nv_gpu_utilization{gpu_uuid="${uuid}"} 0.25
nv_gpu_memory_total_bytes{gpu_uuid="${uuid}"} 85520809984
nv_gpu_memory_used_bytes{gpu_uuid="${uuid}"} ${used}
nv_gpu_power_limit{gpu_uuid="${uuid}"} 700
`;

test("GPU gauges are compared with the values of nvidia-smi, converted to the same units", () => {
  const gpus = parseSmi(smi);
  assert.equal(gpus[0]!.memoryUsedBytes, 2 ** 30);
  assert.deepEqual(gaugeProblems(gauges("GPU-1", 2 ** 30) + gauges("GPU-2", 1000), gpus), []);
  assert.deepEqual(gaugeProblems(gauges("GPU-1", 2 ** 31) + gauges("GPU-2", 1000), gpus), [
    "nv_gpu_memory_used_bytes of GPU-1 is 2147483648, and nvidia-smi says 1073741824",
  ]);
  assert.equal(gaugeProblems(gauges("GPU-1", 2 ** 30), gpus).length, 4, "GPU-2 is absent");
});

test("without a GPU every check prints what is missing, nothing is recorded and the run fails", async () => {
  const program = join(import.meta.dirname, "run.ts");
  const { code, stdout } = await new Promise<{ code: unknown; stdout: string }>((resolve) => {
    execFile(
      process.execPath,
      [program, "--python", "/nonexistent/python", "--device", "/nonexistent/gpu"],
      { env: { PATH: "/nonexistent" } },
      (error, out) => resolve({ code: error?.code ?? 0, stdout: out }),
    );
  });
  assert.equal(code, 1);
  assert.deepEqual(stdout.trim().split("\n"), [
    "not run  gauges compared with nvidia-smi: missing an NVIDIA GPU (/nonexistent/gpu), nvidia-smi",
    "not run  a TensorRT plan of an ONNX model: missing an NVIDIA GPU (/nonexistent/gpu), the package tensorrt in /nonexistent/python",
    "not run  a PyTorch model of KIND_GPU: missing an NVIDIA GPU (/nonexistent/gpu)",
    "not run  an ONNX model of KIND_GPU, with CUDA: missing an NVIDIA GPU (/nonexistent/gpu)",
    "not run  an ONNX model with the accelerator tensorrt: missing an NVIDIA GPU (/nonexistent/gpu), TensorRT 10 (libnvinfer.so.10)",
    "not run  a TensorFlow graph of KIND_GPU: missing an NVIDIA GPU (/nonexistent/gpu)",
    "not run  DALI's mixed decoder: missing an NVIDIA GPU (/nonexistent/gpu)",
    "no check has run, so no figures are written",
  ]);
});
