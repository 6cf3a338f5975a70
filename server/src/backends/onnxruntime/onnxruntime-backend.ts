import { createHash } from "node:crypto";
import { join } from "node:path";
import { type Clock, InferenceError, type Logger } from "../../base/index.ts";
import { mergeAutoComplete, type ModelConfig } from "../../modelconfig/index.ts";
import { openOnnxRuntime, type OnnxRuntime, type OnnxSession } from "../../native/index.ts";
import type { Backend, LoadContext, LoadedModel, ModelSource } from "../backend.ts";
import { checkModel } from "./check-model.ts";
import { completionFor } from "./complete-model.ts";
import { ModelFileIndex } from "./model-files.ts";
import { onnxRuntimeInstance } from "./onnxruntime-instance.ts";
import { readSessionParameters, type SessionParameters } from "./session-parameters.ts";
import { type SessionLease, SharedSessions } from "./shared-sessions.ts";

export interface OnnxRuntimeBackendOptions {
  /** libonnxruntime.so.1 of the onnxruntime-node package, or any other from 1.16 on. Opened with the first model. */
  readonly libraryPath: string;
  /** Native runs at once over all models. */
  readonly runsMax: number;
  /** Threads of a run, 0 for one on each core. `--backend-config` may set another number. */
  readonly intraOpThreadCount: number;
  /** Sessions have thread pools of their own until these have so many threads together; the others share one. */
  readonly ownThreadCountMax: number;
  readonly log: Logger;
  readonly clock: Clock;
}

/** How long a session opened to complete a configuration waits to be wanted by the load that follows. */
const completionKeptMs = 5_000;

/** `onnxruntime`: ONNX models in this process, through the C API. */
export function createOnnxRuntimeBackend(options: OnnxRuntimeBackendOptions): Backend {
  const files = new ModelFileIndex();
  const sessions = new SharedSessions();
  /** Output indices that surprised, by session: what one instance learned, all know. */
  const surprises = new WeakMap<OnnxSession, Set<number>>();
  const kept = new Set<() => Promise<void>>();
  let runtime: OnnxRuntime | null = null;

  function openRuntime(context: LoadContext): OnnxRuntime {
    runtime ??= openOnnxRuntime({
      libraryPath: options.libraryPath,
      runsMax: options.runsMax,
      intraOpThreadCount: threadCount(context, "intra_op_thread_count") || options.intraOpThreadCount,
      ownThreadCountMax: options.ownThreadCountMax,
      interOpThreadCount: threadCount(context, "inter_op_thread_count") ?? 0,
      // ONNX Runtime's own name for it. Off, each step of a run waits for its threads to wake (MiniLM, 8 tokens: 2.2 ms
      // instead of 1.5 on two cores); on, they take the cores from worker processes for a moment after each step.
      spin: context.backendConfig.get("session.intra_op.allow_spinning") !== "0",
    });
    return runtime;
  }

  async function lease(
    { source, config, context }: { source: ModelSource; config: ModelConfig; context: LoadContext },
    use: { charged: boolean },
  ): Promise<SessionLease> {
    const complete = sessionParameters(source, config);
    const found = await files.find(source.versionDirectory, fileNameOf(config), config.name);
    context.signal.throwIfAborted();
    const opened = openRuntime(context);
    return await sessions.lease(keyOf(found.contentKey, complete), {
      byteLength: found.byteLength,
      charged: use.charged,
      open: () => opened.openSession({ ...complete, modelPath: found.modelPath, optimizedModelPath: null }),
    });
  }

  /** Holds a lease until the load that follows has its own, so that a model is not loaded twice. */
  function keepForLoad(held: SessionLease): void {
    const end = async () => {
      if (!kept.delete(end)) return;
      timer[Symbol.dispose]();
      await held[Symbol.asyncDispose]();
    };
    kept.add(end);
    const timer = options.clock.timer(completionKeptMs, () => {
      end().catch((error: unknown) => options.log.error(`closing an ONNX Runtime session: ${String(error)}`));
    });
  }

  return {
    name: "onnxruntime",

    async complete(source, config, context) {
      if (config.inputs.length > 0 && config.outputs.length > 0) return config;
      const held = await lease({ source, config, context }, { charged: false });
      try {
        return mergeAutoComplete(config, completionFor(config, held.session, context.backendConfig));
      } finally {
        keepForLoad(held);
      }
    },

    async estimateBytes(source, config) {
      const found = await files.find(source.versionDirectory, fileNameOf(config), config.name);
      return sessions.isOpen(keyOf(found.contentKey, sessionParameters(source, config))) ? 0 : found.byteLength;
    },

    warmUp: () => Promise.resolve(),

    async load(source, config, context) {
      warnWithoutEffect(config, options.log);
      const held = await lease({ source, config, context }, { charged: true });
      try {
        checkModel(config, held.session);
      } catch (error) {
        await held[Symbol.asyncDispose]();
        throw error;
      }
      const unforeseeable = surprises.get(held.session) ?? new Set<number>();
      surprises.set(held.session, unforeseeable);
      return loadedModel({ source, config, context, held, unforeseeable, clock: options.clock });
    },

    async [Symbol.asyncDispose]() {
      for (const end of kept) await end();
      await runtime?.[Symbol.asyncDispose]();
      runtime = null;
    },
  };
}

function loadedModel(parts: {
  readonly source: ModelSource;
  readonly config: ModelConfig;
  readonly context: LoadContext;
  readonly held: SessionLease;
  readonly unforeseeable: Set<number>;
  readonly clock: Clock;
}): LoadedModel {
  const { source, config, context, held } = parts;
  const placed = (tensors: readonly { readonly name: string }[], values: readonly { readonly name: string }[]) =>
    tensors.map(({ name }) => ({ name, index: values.findIndex((value) => value.name === name) }));
  const shared = {
    modelName: source.servedName,
    modelVersion: String(source.version),
    batches: config.maxBatchSize > 0,
    session: held.session,
    arena: context.arena,
    clock: parts.clock,
    inputs: placed(config.inputs, held.session.inputs),
    outputs: placed(config.outputs, held.session.outputs),
    unforeseeable: parts.unforeseeable,
  };
  return {
    instances: config.instanceGroups.flatMap((group) =>
      Array.from({ length: group.count }, (_, index) =>
        onnxRuntimeInstance({ ...shared, name: `${group.name}_${index}` }),
      ),
    ),
    memoryBytes: () => Promise.resolve(held.chargedBytes()),
    [Symbol.asyncDispose]: () => held[Symbol.asyncDispose](),
  };
}

function sessionParameters(source: ModelSource, config: ModelConfig): SessionParameters {
  const { session } = readSessionParameters(config);
  return {
    ...session,
    customOpLibraries: session.customOpLibraries.map((path) => join(source.modelDirectory, path)),
  };
}

function fileNameOf(config: ModelConfig): string {
  return config.defaultModelFilename === "" ? "model.onnx" : config.defaultModelFilename;
}

function keyOf(contentKey: string, parameters: SessionParameters): string {
  const settings = JSON.stringify({ ...parameters, config: Object.fromEntries(parameters.config) });
  return createHash("sha256").update(`${contentKey}\0${settings}`).digest("hex");
}

function warnWithoutEffect(config: ModelConfig, log: Logger): void {
  if (config.instanceGroups.some((group) => group.kind === "KIND_GPU")) {
    log.warning(`model '${config.name}' asks for KIND_GPU; its ONNX Runtime sessions run on the CPU`);
  }
  for (const key of readSessionParameters(config).withoutEffect) {
    log.warning(`model '${config.name}': parameter '${key}' is for the CUDA execution provider and has no effect here`);
  }
}

function threadCount(context: LoadContext, key: string): number | null {
  const text = context.backendConfig.get(key);
  if (text === undefined) return null;
  if (!/^\d{1,4}$/.test(text)) {
    throw new InferenceError("INVALID_ARG", `--backend-config onnxruntime,${key}: '${text}' is no thread count`);
  }
  return Number(text);
}
