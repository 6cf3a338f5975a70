import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { InferenceError } from "@galatea/base";
import type { PayloadCodec, PayloadReply } from "@galatea/server/protocols";
import type { ContainerKind, KindStart, OpenedContainer } from "../container-kind.ts";
import { readRequirements } from "../scripts/requirements.ts";
import { bodyInput, bodyOutput, scriptCodec } from "../scripts/script-codec.ts";
import { servingSettings } from "./serving-settings.ts";

/** The python-based backend that serves an archive's SavedModels like TensorFlow Serving, and its framework. */
const backend = "tensorflow_serving";
const framework = "tensorflow";
/** Maximum number of requests that are passed to a process together; the process itself combines their rows to batches. */
const togetherMax = 256;

/** SageMaker's TensorFlow Serving container: an archive has SavedModels, and optionally a script for pre- and post-processing. */
export const tensorflowServingContainer: ContainerKind = { open: openServingContainer };

function openServingContainer(start: KindStart): OpenedContainer {
  const settings = servingSettings(start);
  const { batching } = settings;
  const config = {
    backend,
    max_batch_size: batching === null ? 0 : Math.min(batching.rowsMax, togetherMax),
    ...(batching === null
      ? {}
      : {
          dynamic_batching: {
            max_queue_delay_microseconds: batching.delayUs,
            default_queue_policy: { max_queue_size: batching.queuedMax },
          },
        }),
    input: [{ name: bodyInput, data_type: "TYPE_STRING", dims: [1] }],
    output: [{ name: bodyOutput, data_type: "TYPE_STRING", dims: [1] }],
    instance_group: [{ count: settings.instanceCount, kind: "KIND_CPU" }],
  };
  return {
    codec: servingCodec,
    readPaths: [],
    opensPort: true,
    callMsMax: settings.callMsMax,
    bodyBytesMax: null,
    notes: settings.notes,
    modelsIn: async (directory, installer) => {
      const packages = await scriptPackages(directory);
      const values: Readonly<Record<string, string | number>> = {
        default_model: settings.defaultModel,
        is_multi_model: String(start.isMultiModel),
        intra_threads: settings.intraThreads,
        inter_threads: settings.interThreads,
        rows_max: batching?.rowsMax ?? 0,
        wait_seconds: settings.waitSeconds,
        packages_dir: packages.length === 0 ? "" : await installer(framework, packages),
      };
      const parameters = Object.fromEntries(
        Object.entries(values).map(([name, value]) => [name, { string_value: String(value) }]),
      );
      return [{ name: "model", directory, config: { ...config, parameters } }];
    },
  };
}

/** Returns the packages in the script's requirements.txt; none if there is no script, or if `code/lib` has the packages already. */
async function scriptPackages(directory: string): Promise<readonly string[]> {
  const code = join(directory, "code");
  if (!(await exists(join(code, "inference.py"))) || (await exists(join(code, "lib")))) return [];
  return await readRequirements([code]);
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}

/** Passes bodies unchanged, like `scriptCodec`; formats errors of the engine like TensorFlow Serving. */
const servingCodec: PayloadCodec = {
  ...scriptCodec,
  failed(error: InferenceError): PayloadReply {
    const { status } = scriptCodec.failed(error);
    return {
      status,
      contentType: "application/json",
      body: Buffer.from(JSON.stringify({ error: error.message })),
    };
  },
};
