import { InferenceError } from "@galatea/base";
import { addressOf, checkStatus, made, type OrtApi, textBytes } from "./onnxruntime-api.ts";

/** An execution provider, which runs operators of a session elsewhere than on the CPU. Its options are the library's own, by name. */
export interface ExecutionProvider {
  readonly name: "cuda" | "tensorrt";
  readonly options: readonly (readonly [name: string, value: string])[];
}

/** Each provider has four functions of the C API, and its own library, which is opened when its first options are created. */
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
 * Adds a provider after those that the session has; the first one that can run an operator runs it. Throws UNAVAILABLE, with the loader's
 * reason and a remedy, when the provider's library cannot be opened or it rejects the options.
 */
export function appendProvider(api: OrtApi, sessionOptions: bigint, { name, options }: ExecutionProvider): void {
  const row = providers[name];
  try {
    const handle = made(api, api[row.create]);
    try {
      const texts = options.map((pair) => pair.map(textBytes));
      const [names, values] = [0, 1].map((side) => BigUint64Array.from(texts, (pair) => addressOf(pair[side]!)));
      checkStatus(api, api[row.update](handle, names!, values!, options.length));
      checkStatus(api, api[row.append](sessionOptions, handle));
      // The texts must be reachable until here; the library has copied them.
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
