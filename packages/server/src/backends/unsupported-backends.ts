import { stat } from "node:fs/promises";
import { join } from "node:path";
import { findGpuLibraries, missingTensorRtPrerequisites } from "./gpu-machine.ts";

const throughOnnx = "convert the model to ONNX and serve it with backend 'onnxruntime'";
const throughPython = "or load it in a model.py of backend 'python', with its packages in an environment of its own";

/** Backends of Triton that are not available here, each with a remedy. */
const unserved: Readonly<Record<string, string>> = {
  openvino: `OpenVINO's format is not served: ${throughOnnx}, ${throughPython}`,
  mxnet: `MXNet is not served: ${throughOnnx}, ${throughPython}`,
  vllm:
    "vLLM is not served by a backend of this server: give the directory that holds NVIDIA's backend for it (vllm/model.py) as --backend-directory, " +
    "or load its engine in a model.py of backend 'python', with its packages in an environment of its own",
  tensorrtllm:
    "TensorRT-LLM is not served: load its engine in a model.py of backend 'python', with its packages in an environment of its own",
};

/**
 * Returns the remedy for a TensorRT plan, which is code for one kind of GPU and one version of TensorRT. `missing` lists the prerequisites
 * that the machine lacks.
 */
export function planRemedy(missing: readonly string[]): string {
  const lacks = missing.length === 0 ? "this server has access to none" : `this machine lacks ${missing.join(", ")}`;
  return (
    `TensorRT plans run on an NVIDIA GPU, and ${lacks}. Serve the ONNX model that the plan was built from, with backend 'onnxruntime'; ` +
    "`galatea convert` creates one from an encoder's weights"
  );
}

/**
 * Returns the remedy for a model whose backend is not available; null if none is known. Triton searches `directories` for a backend's
 * shared library. Such a library works only in Triton's own process.
 */
export async function backendRemedy(backend: string, directories: readonly string[]): Promise<string | null> {
  if (Object.hasOwn(unserved, backend)) return unserved[backend]!;
  if (backend === "tensorrt") return planRemedy(missingTensorRtPrerequisites(await findGpuLibraries()));
  const library = `libtriton_${backend}.so`;
  for (const directory of directories) {
    const found = await stat(join(directory, library)).catch(() => null);
    if (found !== null)
      return (
        `'${library}' is a library for Triton's own process, and native backends run in no other. A backend written in Python runs ` +
        `here: <backend>/model.py below --backend-directory`
      );
  }
  return null;
}
