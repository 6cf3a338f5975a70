import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { access, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureFramework, startGalatea, type RunningServer } from "../environments/index.ts";
import { harmless, writeModel } from "../faults/onnx-models.ts";
import { photographsOfPackages } from "../frameworks/dali-fixture.ts";
import { gaugeProblems, parseSmi, smiQuery } from "./gauges.ts";

const run = promisify(execFile);

export interface GpuRun {
  /** The Python interpreter with TensorRT's package; null if none was given. */
  readonly python: string | null;
  /** The device file that NVIDIA's kernel module creates for a GPU. */
  readonly device: string;
  /** An empty directory. */
  readonly directory: string;
}

/** A check that needs a GPU. */
export interface GpuRow {
  readonly name: string;
  /**
   * Resolves with the names of the prerequisites that the machine lacks; `unbuilt` if the product does not have the
   * feature.
   */
  missing(run: GpuRun): Promise<readonly string[]>;
  /** Runs the check and resolves with its figures. Throws if a result is wrong. */
  figures(run: GpuRun): Promise<Readonly<Record<string, number | string>>>;
}

async function gpu({ device }: GpuRun): Promise<readonly string[]> {
  const isThere = await access(device).then(
    () => true,
    () => false,
  );
  return isThere ? [] : [`an NVIDIA GPU (${device})`];
}

async function program(name: string, args: readonly string[], what = name): Promise<readonly string[]> {
  return run(name, args).then(
    () => [],
    () => [what],
  );
}

/** Two models of the same file. */
const kinds = { on_gpu: "KIND_GPU", on_cpu: "KIND_CPU" };

export const gpuRows: readonly GpuRow[] = [
  {
    name: "gauges compared with nvidia-smi",
    missing: async (about) => [...(await gpu(about)), ...(await program("nvidia-smi", ["-L"]))],
    async figures({ directory }) {
      return await withServer(directory, [], async (server) => {
        const exposition = await textOf(server, "gpu");
        const { stdout } = await run("nvidia-smi", [`--query-gpu=${smiQuery}`, "--format=csv,noheader,nounits"]);
        const gpus = parseSmi(stdout);
        assert.deepEqual(gaugeProblems(exposition, gpus), []);
        return { gpus: gpus.length, memoryTotalBytes: gpus[0]!.memoryTotalBytes };
      });
    },
  },
  {
    name: "a TensorRT plan of an ONNX model",
    missing: async (about) => [
      ...(await gpu(about)),
      ...(about.python === null
        ? ["an interpreter with TensorRT's package (--python)"]
        : await program(about.python, ["-c", "import tensorrt"], `the package tensorrt in ${about.python}`)),
    ],
    async figures({ python, directory }) {
      const version = join(directory, "repository", "plan", "1");
      await mkdir(version, { recursive: true });
      const onnx = join(directory, "model.onnx");
      await writeModel(onnx, harmless);
      const maker = fileURLToPath(new URL("make_plan.py", import.meta.url));
      const { stdout } = await run(python!, [maker, onnx, join(version, "model.plan"), "x"]);
      await writeFile(
        join(version, "..", "config.pbtxt"),
        'platform: "tensorrt_plan" input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }',
      );
      return await withServer(directory, [`--python=${python}`], async (server) => {
        const response = await infer(server, "plan", "x", [1, -2, 3]);
        assert.deepEqual(response["y"], [-1, 2, -3]);
        return { tensorrt: stdout.trim(), ...(await timed(() => infer(server, "plan", "x", [1, -2, 3]))) };
      });
    },
  },
  {
    name: "a PyTorch model of KIND_GPU",
    missing: gpu,
    async figures({ directory }) {
      const { python } = await ensureFramework("pytorch", (line) => console.error(line));
      const version = join(directory, "repository", "torch", "1");
      await mkdir(version, { recursive: true });
      await run(python, [fileURLToPath(new URL("torch_model.py", import.meta.url)), join(version, "model.pt")]);
      await writeFile(
        join(version, "..", "config.pbtxt"),
        `backend: "pytorch" instance_group { kind: KIND_GPU }
         input { name: "INPUT__0" data_type: TYPE_FP32 dims: [ -1 ] }
         output [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "OUTPUT__1" data_type: TYPE_FP32 dims: [ 1 ] } ]`,
      );
      return await withServer(directory, [], async (server) => {
        const response = await infer(server, "torch", "INPUT__0", [1, 2]);
        assert.deepEqual(response, { OUTPUT__0: [2, 4], OUTPUT__1: [1] });
        return await timed(() => infer(server, "torch", "INPUT__0", [1, 2]));
      });
    },
  },
  {
    name: "an ONNX model of KIND_GPU, with CUDA",
    missing: gpu,
    figures: (about) => onnxFigures(about, "cuda"),
  },
  {
    name: "an ONNX model with the accelerator tensorrt",
    missing: async (about) => [
      ...(await gpu(about)),
      ...(await program("sh", ["-c", "ldconfig -p | grep -q libnvinfer.so.10"], "TensorRT 10 (libnvinfer.so.10)")),
    ],
    figures: (about) => onnxFigures(about, "tensorrt"),
  },
  {
    name: "a TensorFlow graph of KIND_GPU",
    missing: gpu,
    async figures({ directory }) {
      const { python } = await ensureFramework("tensorflow-gpu", (line) => console.error(line));
      const version = join(directory, "repository", "graph", "1");
      await mkdir(version, { recursive: true });
      const maker = fileURLToPath(new URL("tensorflow_graph.py", import.meta.url));
      await run(python, [maker, join(version, "model.graphdef")]);
      await writeFile(
        join(version, "..", "config.pbtxt"),
        `platform: "tensorflow_graphdef" instance_group { kind: KIND_GPU }
         input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }`,
      );
      return await withServer(directory, [], async (server) => {
        assert.deepEqual(await infer(server, "graph", "x", [1, 2]), { y: [2, 4] });
        return await timed(() => infer(server, "graph", "x", [1, 2]));
      });
    },
  },
  {
    name: "DALI's mixed decoder",
    missing: gpu,
    async figures({ directory }) {
      const { python } = await ensureFramework("dali", (line) => console.error(line));
      const { files } = await photographsOfPackages();
      for (const [model, kind] of Object.entries(kinds)) {
        const version = join(directory, "repository", model, "1");
        await mkdir(version, { recursive: true });
        await run(python, [fileURLToPath(new URL("dali_pipeline.py", import.meta.url)), join(version, "model.dali")]);
        await writeFile(
          join(version, "..", "config.pbtxt"),
          `backend: "dali" max_batch_size: 8 instance_group { count: 1 kind: ${kind} }`,
        );
      }
      return await withServer(directory, [], async (server) => {
        const picture = [...(await readFile(files[0]!))];
        const request = async (model: string) =>
          Object.values(await infer(server, model, "encoded", [picture], "UINT8"))[0]!;
        const [onGpu, onCpu] = [await request("on_gpu"), await request("on_cpu")];
        // Decoders may round differently, by one or two steps of 255.
        const differences = onGpu.map((value, at) => Math.abs(value - onCpu[at]!));
        const meanDifference = differences.reduce((sum, one) => sum + one, 0) / onCpu.length;
        assert.equal(onGpu.length, onCpu.length);
        assert.ok(meanDifference < 2, `pixels differ by ${meanDifference}`);
        return { meanDifference, ...(await timed(() => request("on_gpu"))) };
      });
    },
  },
];

async function onnxFigures({ directory }: GpuRun, accelerator: "cuda" | "tensorrt") {
  await ensureFramework("onnxruntime-gpu", (line) => console.error(line));
  for (const [model, kind] of Object.entries(kinds)) {
    const version = join(directory, "repository", model, "1");
    await mkdir(version, { recursive: true });
    await writeModel(join(version, "model.onnx"), harmless);
    await writeFile(
      join(version, "..", "config.pbtxt"),
      `backend: "onnxruntime" instance_group { count: 1 kind: ${kind} }
       optimization { execution_accelerators { gpu_execution_accelerator { name: "${accelerator}" } } }`,
    );
  }
  return await withServer(directory, [], async (server) => {
    const requestCount = [1, -2, 3];
    const onCpu = await infer(server, "on_cpu", "x", requestCount);
    assert.deepEqual(await infer(server, "on_gpu", "x", requestCount), onCpu);
    return await timed(() => infer(server, "on_gpu", "x", requestCount));
  });
}

async function withServer<Found>(
  directory: string,
  flags: readonly string[],
  use: (server: RunningServer) => Promise<Found>,
): Promise<Found> {
  const repository = join(directory, "repository");
  await mkdir(repository, { recursive: true });
  const server = await startGalatea({ repositories: [repository], flags });
  try {
    return await use(server);
  } finally {
    await server.stop();
  }
}

/** Resolves with the metrics as soon as they contain a GPU gauge. */
async function textOf(server: RunningServer, word: string): Promise<string> {
  const signal = AbortSignal.timeout(30_000);
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${server.metricsPort}/metrics`, { signal });
    const text = await response.text();
    if (text.includes(`nv_${word}_`)) return text;
  }
}

/** `data` is a vector, or a batch of vectors of one length. */
async function infer(
  server: RunningServer,
  model: string,
  name: string,
  data: readonly number[] | readonly (readonly number[])[],
  datatype = "FP32",
) {
  const [first] = data;
  const shape = Array.isArray(first) ? [data.length, first.length] : [data.length];
  const response = await fetch(`http://127.0.0.1:${server.httpPort}/v2/models/${model}/infer`, {
    method: "POST",
    body: JSON.stringify({ inputs: [{ name, datatype, shape, data }] }),
    signal: AbortSignal.timeout(60_000),
  });
  const body = (await response.json()) as { error?: string; outputs?: { name: string; data: number[] }[] };
  assert.equal(body.error, undefined);
  return Object.fromEntries(body.outputs!.map((output) => [output.name, output.data]));
}

const timedRequests = 200;

/** Measures sequential requests, in milliseconds. */
async function timed(request: () => Promise<unknown>): Promise<{ readonly p50Ms: number; readonly p99Ms: number }> {
  const took: number[] = [];
  for (let i = 0; i < timedRequests; i += 1) {
    const began = performance.now();
    await request();
    took.push(performance.now() - began);
  }
  took.sort((one, other) => one - other);
  const at = (share: number) => Number(took[Math.floor(share * timedRequests)]!.toFixed(3));
  return { p50Ms: at(0.5), p99Ms: at(0.99) };
}
