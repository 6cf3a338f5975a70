import { createHash } from "node:crypto";
import { type Clock, InferenceError, type Logger } from "@galatea/base";
import { mergeAutoComplete, placedInstances, type ModelConfig } from "../../modelconfig/index.ts";
import type { Arena } from "../../tensor/index.ts";
import type { Backend, LoadContext, LoadedModel, ModelSource } from "../backend.ts";
import type { DeviceBytes, MemoryDevice } from "../device-bytes.ts";
import { checkModel } from "./check-model.ts";
import { rejectEmbeddedEngines } from "./embedded-engines.ts";
import { completeFromModelFile } from "./complete-model.ts";
import { noGpus, type OnnxGpus, rejectMissingGpu, resolvePaths } from "./gpus.ts";
import { type LeasedSession, leaseSession } from "./leased-session.ts";
import { type ModelFiles, ModelFileIndex } from "./model-files.ts";
import { onnxRuntimeInstance } from "./onnxruntime-instance.ts";
import { Runner, type RunnerOptions } from "./runner.ts";
import { Runners, type RunnersOptions } from "./runners.ts";
import { readSessionParameters, type SessionParameters } from "./session-parameters.ts";
import { type SessionLease, SharedSessions } from "../shared-sessions.ts";

export interface OnnxRuntimeBackendOptions
  extends
    Omit<RunnerOptions, "name" | "runtime" | "runThreadsMax" | "onMemory" | "gpuBytesOf">,
    Pick<RunnersOptions, "crashes" | "isolatedRunnersMax" | "isolatedIdleMs"> {
  /** Path of libonnxruntime.so.1, version 1.16 or later; opened when the first model is loaded. */
  readonly libraryPath: string;
  /** Maximum number of concurrent runs of all models together, without long runs. */
  readonly slotCount: number;
  /** Threads of a run; 0 for one per core. `--backend-config` may set another number. */
  readonly intraOpThreadCount: number;
  /** Limit of the sum of threads in sessions' own thread pools. When it is reached, further sessions share one pool. */
  readonly ownThreadCountMax: number;
  /** Duration in milliseconds after which a run counts as long and other runs no longer wait for it. */
  readonly longRunMs: number;
  /** Concurrent long runs of one model, and of one tenant, which are allowed in addition to `slotCount`. */
  readonly longRunsOfModelMax: number;
  readonly longRunsOfTenantMax: number;
  /** Threads that run models in each runner process. */
  readonly runsMax: number;
  readonly gpus: OnnxGpus;
}

/** Options that have a default. */
export const onnxRuntimeBackendDefaults = {
  // A typical run takes a hundredth of this time.
  longRunMs: 100,
  // Each long run occupies a thread and processors that other models need.
  longRunsOfModelMax: 2,
  longRunsOfTenantMax: 8,
  runsMax: 64,
  gpus: noGpus,
  crashes: { isolateAfter: 2, refusedAfter: 4, forgetMs: 10 * 60_000, contentsMax: 1000 },
  isolatedRunnersMax: 4,
  isolatedIdleMs: 30_000,
  keptBytesMax: 64 * 2 ** 20,
  memoryReleaseMs: 1000,
  responseMs: 60_000,
  terminateMs: 5000,
} as const;

/** Time in milliseconds for which a session that was opened to complete a configuration is kept for the load that usually follows. */
const completionKeptMs = 5_000;

/** Creates the backend `onnxruntime`, which runs ONNX models through ONNX Runtime's C API in separate processes. */
export function createOnnxRuntimeBackend(options: OnnxRuntimeBackendOptions): Backend {
  return new OnnxRuntimeBackend(options);
}

class OnnxRuntimeBackend implements Backend {
  readonly name = "onnxruntime";
  readonly #options: OnnxRuntimeBackendOptions;
  readonly #files = new ModelFileIndex();
  readonly #sessions = new SharedSessions<LeasedSession>();
  readonly #arenas = new ArenaUse(async (arena) => {
    for (const runners of await this.#allRunners()) await runners.forget(arena);
  });
  /** Functions that dispose the sessions opened by `complete`, by load key. An entry exists until the model's load. */
  readonly #kept = new Map<string, () => Promise<void>>();
  #runners: Runners | null = null;
  /** Processes for models on GPUs; null until the first such model. */
  #gpuRunners: Promise<Runners> | null = null;

  constructor(options: OnnxRuntimeBackendOptions) {
    this.#options = options;
  }

  async complete(source: ModelSource, config: ModelConfig, context: LoadContext): Promise<ModelConfig> {
    if (config.inputs.length > 0 && config.outputs.length > 0) return config;
    const [device] = this.#devicesOf(config);
    const held = await this.#lease({ source, config, context, device: device! }, { onCharged: null });
    try {
      return mergeAutoComplete(config, completeFromModelFile(config, held.lease.session, context.backendConfig));
    } finally {
      await this.#keepForLoad(loadKey(source, context), held.lease);
    }
  }

  async estimateBytes(source: ModelSource, config: ModelConfig): Promise<DeviceBytes> {
    const found = await this.#files.find(source.versionDirectory, fileNameOf(config), config.name);
    // Memory that earlier runs have not released is released before more is requested.
    for (const runners of await this.#allRunners()) await runners.settle();
    const bytes = new Map<MemoryDevice, number>();
    for (const device of this.#devicesOf(config)) {
      const key = keyOf(found.contentKey, await this.#parametersOn(source, config, device));
      if (this.#sessions.isOpen(key)) continue;
      bytes.set("machine", (bytes.get("machine") ?? 0) + found.byteLength);
      if (device !== null) bytes.set(`gpu ${device}`, found.byteLength);
    }
    return bytes;
  }

  warmUp(): Promise<void> {
    return this.#openRunners(new Map()).warmUp();
  }

  async load(source: ModelSource, config: ModelConfig, context: LoadContext): Promise<LoadedModel> {
    const { gpus, log, clock } = this.#options;
    rejectMissingGpu(config, gpus);
    const devices = this.#devicesOf(config);
    warnWithoutEffect(config, devices, log);
    await using leases = new AsyncDisposableStack();
    const held = new Map<number | null, PlacedSession>();
    for (const device of devices) {
      const onCharged = context.onMemory ?? (() => {});
      const placed = await this.#lease({ source, config, context, device }, { onCharged });
      leases.use(placed.lease);
      held.set(device, placed);
      checkModel(config, placed.lease.session);
    }
    await this.#kept.get(loadKey(source, context))?.();
    return loadedModel({ source, config, context, held, gpuCount: gpus.count, leases: leases.move(), clock });
  }

  /** Returns the GPUs of the model's instances; [null] for the CPU. */
  #devicesOf(config: ModelConfig): readonly (number | null)[] {
    const placed = placedInstances(config, this.#options.gpus.count);
    return [...new Set(placed.map(({ kind, deviceId }) => (kind === "GPU" ? deviceId : null)))];
  }

  async #parametersOn(source: ModelSource, config: ModelConfig, device: number | null): Promise<PlacedParameters> {
    const { session } = readSessionParameters(config);
    if (device === null) return { ...session, device };
    const { gpus } = this.#options;
    const providers = await resolvePaths(gpus.providersOn(config, device), source, gpus);
    return { ...session, options: { ...session.options, providers }, device };
  }

  async #runnersOn(device: number | null, backendConfig: ReadonlyMap<string, string>): Promise<Runners> {
    if (device === null) return this.#openRunners(backendConfig);
    this.#gpuRunners ??= this.#openGpuRunners(backendConfig).catch((error: unknown) => {
      // The next model tries again, because the missing library may be installed by then.
      this.#gpuRunners = null;
      throw error;
    });
    return await this.#gpuRunners;
  }

  async #openGpuRunners(backendConfig: ReadonlyMap<string, string>): Promise<Runners> {
    const { findLibrary, bytesOf } = this.#options.gpus;
    const options = { ...this.#options, ...(await findLibrary()) };
    return this.#makeRunners(runnersOptions(options, backendConfig, bytesOf));
  }

  async #allRunners(): Promise<readonly Runners[]> {
    const onGpus = await this.#gpuRunners?.catch(() => null);
    return [this.#runners, onGpus].filter((runners) => runners !== null && runners !== undefined);
  }

  /** Starts the runners with the library settings of the first model; all models of a process share them. */
  #openRunners(backendConfig: ReadonlyMap<string, string>): Runners {
    this.#runners ??= this.#makeRunners(runnersOptions(this.#options, backendConfig, null));
    return this.#runners;
  }

  #makeRunners(options: Omit<RunnersOptions, "onMemory">): Runners {
    return new Runners({
      ...options,
      onMemory: (keys) => {
        for (const key of keys) this.#sessions.changed(key);
      },
    });
  }

  async #lease(
    { source, config, context, device }: PlacedModel,
    use: { onCharged: (() => void) | null },
  ): Promise<PlacedSession> {
    const parameters = await this.#parametersOn(source, config, device);
    const opened = await this.#runnersOn(device, context.backendConfig);
    // The process starts while the files are read. If the start fails, the load reports the error.
    opened.warmUp().catch(() => {});
    const find = () => this.#files.find(source.versionDirectory, fileNameOf(config), config.name);
    const found = await find();
    if (!this.#options.gpus.keepsEngines)
      await rejectEmbeddedEngines(found.modelPath, source.servedName, parameters.options.providers);
    context.signal.throwIfAborted();
    const key = keyOf(found.contentKey, parameters);
    const content = {
      key,
      modelName: source.servedName,
      device,
      options: { ...parameters.options, modelPath: found.modelPath },
      shrinksAfterRun: parameters.shrinksAfterRun,
      byteLength: found.byteLength,
      verify: () => checkSame(source.servedName, found, find),
    };
    const lease = await this.#sessions.lease(key, {
      bytes: () => opened.bytesOf(key) ?? found.byteLength,
      onCharged: use.onCharged,
      open: () => leaseSession(opened, content),
    });
    return { lease: this.#arenas.during(context.arena, lease), gpuBytes: () => opened.gpuBytesOf(key) };
  }

  /** Keeps the session of `complete` until the load that usually follows, so that the model is not loaded twice. */
  async #keepForLoad(key: string, lease: SessionLease<LeasedSession>): Promise<void> {
    await this.#kept.get(key)?.();
    const end = async () => {
      if (this.#kept.get(key) === end) this.#kept.delete(key);
      timer[Symbol.dispose]();
      await lease[Symbol.asyncDispose]();
    };
    this.#kept.set(key, end);
    const timer = this.#options.clock.timer(completionKeptMs, () => {
      end().catch((error: unknown) => this.#options.log.error(`closing an ONNX Runtime session: ${String(error)}`));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#kept.values()) await end();
    for (const runners of await this.#allRunners()) await runners[Symbol.asyncDispose]();
    this.#runners = null;
    this.#gpuRunners = null;
  }
}

/** The session of a model on one device. */
interface PlacedSession {
  readonly lease: SessionLease<LeasedSession>;
  /** Returns the GPU memory of the session, even if it is charged to another model that shares the session. */
  readonly gpuBytes: () => DeviceBytes;
}

interface PlacedModel {
  readonly source: ModelSource;
  readonly config: ModelConfig;
  readonly context: LoadContext;
  /** Null for the CPU. */
  readonly device: number | null;
}

/** All properties that determine a session, except its files. Models with equal parameters and files share one session. */
type PlacedParameters = SessionParameters & Pick<PlacedModel, "device">;

function loadedModel(dependencies: {
  readonly source: ModelSource;
  readonly config: ModelConfig;
  readonly context: LoadContext;
  /** Sessions by GPU; null for the CPU. */
  readonly held: ReadonlyMap<number | null, PlacedSession>;
  readonly gpuCount: number;
  /** Owns the leases of the sessions. */
  readonly leases: AsyncDisposable;
  readonly clock: Clock;
}): LoadedModel {
  const { source, config, context, held, leases } = dependencies;
  const placed = (tensors: readonly { readonly name: string }[], values: readonly { readonly name: string }[]) =>
    tensors.map(({ name }) => ({ name, index: values.findIndex((value) => value.name === name) }));
  const shared = ({ lease: { session } }: PlacedSession) => ({
    modelName: source.servedName,
    modelVersion: String(source.version),
    batches: config.maxBatchSize > 0,
    session,
    arena: context.arena,
    clock: dependencies.clock,
    inputs: placed(config.inputs, session.inputs),
    outputs: placed(config.outputs, session.outputs),
  });
  const byDevice = new Map([...held].map(([device, session]) => [device, shared(session)]));
  return {
    instances: placedInstances(config, dependencies.gpuCount).map(({ name, kind, deviceId }) =>
      onnxRuntimeInstance({ ...byDevice.get(kind === "GPU" ? deviceId : null)!, name }),
    ),
    memoryBytes: () => Promise.resolve(chargedBytes([...held.values()])),
    [Symbol.asyncDispose]: () => leases[Symbol.asyncDispose](),
  };
}

function chargedBytes(sessions: readonly PlacedSession[]): DeviceBytes {
  const bytes = new Map<MemoryDevice, number>([["machine", 0]]);
  for (const { lease, gpuBytes } of sessions) {
    bytes.set("machine", bytes.get("machine")! + lease.chargedBytes());
    if (!lease.isCharged()) continue;
    for (const [device, here] of gpuBytes()) bytes.set(device, (bytes.get(device) ?? 0) + here);
  }
  return bytes;
}

/** Counts the models of this backend that use each arena. */
class ArenaUse {
  readonly #counts = new Map<number, number>();
  readonly #onUnused: (arena: Arena) => Promise<void>;

  constructor(onUnused: (arena: Arena) => Promise<void>) {
    this.#onUnused = onUnused;
  }

  /** Returns a lease that also counts as a use of the arena. */
  during(arena: Arena, lease: SessionLease<LeasedSession>): SessionLease<LeasedSession> {
    this.#counts.set(arena.id, (this.#counts.get(arena.id) ?? 0) + 1);
    let isHeld = true;
    return {
      session: lease.session,
      isCharged: () => lease.isCharged(),
      chargedBytes: () => lease.chargedBytes(),
      [Symbol.asyncDispose]: async () => {
        if (!isHeld) return;
        isHeld = false;
        await lease[Symbol.asyncDispose]();
        const count = (this.#counts.get(arena.id) ?? 1) - 1;
        if (count > 0) {
          this.#counts.set(arena.id, count);
          return;
        }
        this.#counts.delete(arena.id);
        await this.#onUnused(arena);
      },
    };
  }
}

function runnersOptions(
  options: OnnxRuntimeBackendOptions,
  backendConfig: ReadonlyMap<string, string>,
  gpuBytesOf: OnnxGpus["bytesOf"] | null,
) {
  const { slotCount } = options;
  const runtime = {
    libraryPath: options.libraryPath,
    intraOpThreadCount: threadCount(backendConfig, "intra_op_thread_count") || options.intraOpThreadCount,
    ownThreadCountMax: options.ownThreadCountMax,
    interOpThreadCount: threadCount(backendConfig, "inter_op_thread_count") ?? 0,
    // This is ONNX Runtime's own key. With "0", each operator of a run waits for its threads to wake: MiniLM with 8 tokens takes 2.2 ms
    // instead of 1.5 ms on two cores. Otherwise threads occupy cores for a moment after each operator.
    spin: backendConfig.get("session.intra_op.allow_spinning") !== "0",
  };
  const runThreadsMax = Math.max(options.runsMax, slotCount);
  const start: RunnersOptions["start"] = (name, onMemory) =>
    Runner.start({ ...options, name, runtime, runThreadsMax, onMemory, gpuBytesOf });
  const runLimits = {
    slotCount,
    longNs: options.longRunMs * 1e6,
    modelRunsMax: slotCount + options.longRunsOfModelMax,
    tenantRunsMax: slotCount + options.longRunsOfTenantMax,
    runsMax: runThreadsMax,
  };
  return { ...options, runLimits, start };
}

async function checkSame(modelName: string, loaded: ModelFiles, find: () => Promise<ModelFiles>): Promise<void> {
  const text = `the files of model '${modelName}' have changed since it was loaded: load it again`;
  let found: ModelFiles;
  try {
    found = await find();
  } catch (error) {
    // The files were removed, or are being changed.
    if (error instanceof InferenceError) throw new InferenceError("UNAVAILABLE", text, { cause: error });
    throw error;
  }
  if (found.contentKey !== loaded.contentKey) throw new InferenceError("UNAVAILABLE", text);
}

/** Returns the key under which `complete` keeps a session for the load that follows. */
function loadKey(source: ModelSource, { arena }: LoadContext): string {
  return `${arena.id} ${source.versionDirectory}`;
}

function fileNameOf(config: ModelConfig): string {
  return config.defaultModelFilename === "" ? "model.onnx" : config.defaultModelFilename;
}

function keyOf(contentKey: string, parameters: PlacedParameters): string {
  const { options, shrinksAfterRun, device } = parameters;
  const settings = JSON.stringify({ ...options, config: Object.fromEntries(options.config), shrinksAfterRun, device });
  return createHash("sha256").update(`${contentKey}\0${settings}`).digest("hex");
}

function warnWithoutEffect(config: ModelConfig, devices: readonly (number | null)[], log: Logger): void {
  if (devices.some((device) => device !== null)) return;
  if (config.instanceGroups.some((group) => group.kind === "KIND_GPU")) {
    log.warning(`model '${config.name}' requests KIND_GPU; its ONNX Runtime sessions run on the CPU`);
  }
  for (const key of readSessionParameters(config).withoutEffect) {
    log.warning(`model '${config.name}': parameter '${key}' is for GPUs and has no effect here`);
  }
}

function threadCount(backendConfig: ReadonlyMap<string, string>, key: string): number | null {
  const text = backendConfig.get(key);
  if (text === undefined) return null;
  if (!/^\d{1,4}$/.test(text)) {
    throw new InferenceError(
      "INVALID_ARG",
      `--backend-config onnxruntime,${key}: '${text}' is not a valid thread count`,
    );
  }
  return Number(text);
}
