import { InferenceError } from "@galatea/base";
import { addressOf, checkStatus, createHandle, type OrtApi, cString } from "./onnxruntime-api.ts";

/**
 * An execution provider: the part of ONNX Runtime that runs operators on another device than the CPU. Option names and values are ONNX
 * Runtime's own.
 */
export interface ExecutionProvider {
  readonly name: "cuda" | "tensorrt";
  readonly options: readonly (readonly [name: string, value: string])[];
}

/** Each provider has four functions in the C API. Its library is opened when its options are first created. */
const providers = {
  cuda: {
    create: "createCudaOptions",
    update: "updateCudaOptions",
    append: "appendCuda",
    release: "releaseCudaOptions",
    needs: "NVIDIA's driver, and the libraries that `galatea model add onnxruntime-gpu` installs",
  },
  tensorrt: {
    create: "createTensorRtOptions",
    update: "updateTensorRtOptions",
    append: "appendTensorRt",
    release: "releaseTensorRtOptions",
    needs:
      "TensorRT 10 (libnvinfer.so.10 and libnvonnxparser.so.10) where the loader finds it, LD_LIBRARY_PATH included",
  },
} as const satisfies Record<ExecutionProvider["name"], object>;

/**
 * Adds a provider to a session's options. An operator runs on the first provider that supports it. Throws UNAVAILABLE, with the reason and
 * a remedy, when the provider's library cannot be opened or rejects the options.
 */
export function appendProvider(api: OrtApi, sessionOptions: bigint, { name, options }: ExecutionProvider): void {
  const row = providers[name];
  try {
    const handle = createHandle(api, api[row.create]);
    try {
      const texts = options.map((pair) => pair.map(cString));
      const [names, values] = [0, 1].map((side) => BigUint64Array.from(texts, (pair) => addressOf(pair[side]!)));
      checkStatus(api, api[row.update](handle, names!, values!, options.length));
      checkStatus(api, api[row.append](sessionOptions, handle));
      // This write keeps the texts reachable until here. The library has copied them by now.
      texts.length = 0;
    } finally {
      api[row.release](handle);
    }
  } catch (error) {
    const { message } = error as Error;
    throw new InferenceError(
      "UNAVAILABLE",
      `the execution provider '${name}' cannot be used: ${message.trimEnd()}. It needs ${row.needs}`,
      { cause: error },
    );
  }
}
