import { availableParallelism } from "node:os";
import { assert, Semaphore } from "@galatea/base";
import { appendProvider, type ExecutionProvider } from "./execution-providers.ts";
import { identityModel } from "./identity-model.ts";
import {
  addressOf,
  callAsync,
  checkStatus,
  createHandle,
  createHandleAsync,
  openOrtLibrary,
  type OrtApi,
  type OrtLibrary,
  cString,
} from "./onnxruntime-api.ts";
import { RunCaller } from "./onnxruntime-call.ts";
import { describeValues, type OnnxValueInfo } from "./onnxruntime-values.ts";
import { divideProcessors, trimHeap, usableProcessors, type ThreadPlacement } from "@galatea/base/system";

export interface OnnxRuntimeOptions {
  /** Path of libonnxruntime.so, with or without a version number. */
  readonly libraryPath: string;
  /** Threads of a run, including the calling thread; 0 for one per core. They belong to the session's own pool or to the shared pool. */
  readonly intraOpThreadCount: number;
  /** Limit of the sum of threads in sessions' own pools. When it is reached, further sessions use the shared pool. */
  readonly ownThreadCountMax: number;
  readonly interOpThreadCount: number;
  /** True if threads of pools spin for a moment before they sleep. */
  readonly spin: boolean;
}

/** Options of a session; null selects the library's default. */
export interface OnnxSessionOptions {
  readonly modelPath: string;
  readonly graphOptimization: "none" | "basic" | "extended" | "all";
  readonly parallelExecution: boolean;
  /** Threads of the session's own pools, regardless of other sessions; null leaves the choice to this runtime. */
  readonly ownThreads: { readonly intraOp: number; readonly interOp: number } | null;
  readonly memoryArena: boolean;
  readonly memoryPattern: boolean;
  /** Execution providers in order of preference, before the CPU. */
  readonly providers: readonly ExecutionProvider[];
  /** Further session settings by ONNX Runtime's keys, such as "session.disable_prepacking". */
  readonly config: ReadonlyMap<string, string>;
}

/** Options of a session with default settings. */
export const plainSession: Omit<OnnxSessionOptions, "modelPath"> = {
  graphOptimization: "all",
  parallelExecution: false,
  ownThreads: null,
  memoryArena: true,
  memoryPattern: true,
  providers: [],
  config: new Map(),
};

/**
 * A loaded model. The handle and the addresses are valid in this process until the session is disposed. It must not be disposed during a
 * run.
 */
export interface OnnxSession extends AsyncDisposable {
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
  /** Address of the OrtSession. */
  readonly handle: bigint;
  /** Addresses of zero-terminated texts: the names of inputs and outputs. */
  readonly inputNames: readonly bigint[];
  readonly outputNames: readonly bigint[];
  /** The best processors for the session's runs; null if all processors are equal. */
  readonly placement: ThreadPlacement | null;
}

export interface OnnxRuntime extends AsyncDisposable {
  readonly version: string;
  readonly api: OrtApi;
  /** Processors that this process may use. */
  readonly processors: readonly number[];
  /** Loads a model on a pool thread. */
  openSession(options: OnnxSessionOptions): Promise<OnnxSession>;
  /** Frees unused memory of the library's memory pool and of the C allocator. */
  releaseUnusedMemory(): Promise<void>;
}

/** Limit of concurrent loads; more would compete for memory bandwidth. */
const loadsMax = 2;

/** The C API's severity "fatal": only fatal messages are logged, because errors are returned as statuses. */
const logSeverity = 4;
const ortArenaAllocator = 1;
const ortMemoryDefault = 0;

/**
 * Opens the library with one environment: one thread pool and one memory pool for all sessions. A process must open it only once. Every
 * session must be disposed before the runtime.
 */
export function openOnnxRuntime(options: OnnxRuntimeOptions): OnnxRuntime {
  return new OpenLibrary(options);
}

class OpenLibrary implements OnnxRuntime {
  readonly version: string;
  readonly api: OrtApi;
  readonly processors: readonly number[];
  readonly #options: OnnxRuntimeOptions;
  readonly #intraOpThreadCount: number;
  readonly #env: bigint;
  readonly #cpuMemory: bigint;
  readonly #allocator: bigint;
  readonly #loads = new Semaphore(loadsMax);
  #sweeper: Sweeper | null = null;
  #sessionCount = 0;
  #ownThreadCount = 0;
  #placedCount = 0;

  constructor(options: OnnxRuntimeOptions) {
    const library = openOrtLibrary(options.libraryPath);
    const { api } = library;
    const { order, coreCount } = usableProcessors();
    this.version = library.version;
    this.api = api;
    this.processors = order;
    this.#options = options;
    this.#intraOpThreadCount = options.intraOpThreadCount || Math.min(coreCount, availableParallelism());
    this.#env = openEnvironment(library, { ...options, intraOpThreadCount: this.#intraOpThreadCount });
    this.#cpuMemory = createHandle(api, api.createCpuMemoryInfo, ortArenaAllocator, ortMemoryDefault);
    const arena = createHandle(api, api.createArenaCfg, 0, extendAsRequested, -1, -1);
    checkStatus(api, api.createAndRegisterAllocator(this.#env, this.#cpuMemory, arena));
    api.releaseArenaCfg(arena);
    this.#allocator = createHandle(api, api.getAllocatorWithDefaultOptions);
  }

  async openSession(sessionOptions: OnnxSessionOptions): Promise<OnnxSession> {
    const threadCount = this.#ownThreads(sessionOptions);
    const own = threadCount > 0 ? { intraOp: threadCount, interOp: 0 } : sessionOptions.ownThreads;
    const placed = { ...sessionOptions, ownThreads: own };
    const placement = this.#place(placed);
    this.#ownThreadCount += threadCount;
    const handle = await this.#load(placed, placement).catch((error: unknown) => {
      this.#ownThreadCount -= threadCount;
      throw error;
    });
    this.#sessionCount += 1;
    return new OpenSession(
      { api: this.api, session: handle, allocator: this.#allocator },
      { placement, freed: () => this.#freed(threadCount) },
    );
  }

  async releaseUnusedMemory(): Promise<void> {
    (this.#sweeper ??= openSweeper(this.api, this.#env)).sweep();
    await trimHeap();
  }

  /** Returns the number of threads in a session's own pool when its options do not specify one; 0 to use the shared pool. */
  #ownThreads({ ownThreads, parallelExecution }: OnnxSessionOptions): number {
    const desired = this.#intraOpThreadCount;
    if (ownThreads !== null || parallelExecution || desired < 2) return 0;
    return this.#ownThreadCount + desired > this.#options.ownThreadCountMax ? 0 : desired;
  }

  /** Returns null when the session uses the shared pool, or there are too few processors for its threads. */
  #place({ ownThreads: own, parallelExecution }: OnnxSessionOptions): ThreadPlacement | null {
    if (own === null || parallelExecution) return null;
    const placement = divideProcessors(this.processors, own.intraOp, this.#placedCount);
    if (placement !== null) this.#placedCount += 1;
    return placement;
  }

  async #load(sessionOptions: OnnxSessionOptions, placement: ThreadPlacement | null): Promise<bigint> {
    using _admitted = await this.#loads.acquire(null);
    const { api } = this;
    const handle = makeSessionOptions(api, sessionOptions, { spin: this.#options.spin, placement });
    try {
      return await createHandleAsync(api, api.createSession, this.#env, cString(sessionOptions.modelPath), handle);
    } finally {
      api.releaseSessionOptions(handle);
      await trimHeap();
    }
  }

  async #freed(threadCount: number): Promise<void> {
    this.#sessionCount -= 1;
    this.#ownThreadCount -= threadCount;
    await trimHeap();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    assert(this.#sessionCount === 0, `ONNX Runtime is closed with ${this.#sessionCount} sessions open`);
    this.#sweeper?.close();
    this.api.releaseMemoryInfo(this.#cpuMemory);
    this.api.releaseEnv(this.#env);
  }
}

class OpenSession implements OnnxSession {
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
  readonly handle: bigint;
  readonly inputNames: readonly bigint[];
  readonly outputNames: readonly bigint[];
  readonly placement: ThreadPlacement | null;
  readonly #api: OrtApi;
  /** Memory that contains the texts of `inputNames` and `outputNames`. */
  readonly #names: Uint8Array[][];
  readonly #freed: () => Promise<void>;
  #isOpen = true;

  constructor(
    dependencies: { readonly api: OrtApi; readonly session: bigint; readonly allocator: bigint },
    { placement, freed }: { readonly placement: ThreadPlacement | null; readonly freed: () => Promise<void> },
  ) {
    this.#api = dependencies.api;
    this.handle = dependencies.session;
    this.placement = placement;
    this.#freed = freed;
    this.inputs = describeValues(dependencies, "Input");
    this.outputs = describeValues(dependencies, "Output");
    this.#names = [this.inputs, this.outputs].map((values) => values.map(({ name }) => cString(name)));
    const [inputNames = [], outputNames = []] = this.#names.map((side) => side.map(addressOf));
    this.inputNames = inputNames;
    this.outputNames = outputNames;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await callAsync(this.#api.releaseSession, this.handle);
    this.#names.length = 0;
    await this.#freed();
  }
}

/**
 * A model with one operator that copies one number. It is run only for a side effect: after a run that requests it, the library frees
 * unused parts of the shared memory pool.
 */
interface Sweeper {
  sweep(): void;
  close(): void;
}

function openSweeper(api: OrtApi, env: bigint): Sweeper {
  const handle = makeSessionOptions(api, { ...plainSession, modelPath: "" }, { spin: false, placement: null });
  let session: bigint;
  try {
    session = createHandle(api, api.createSessionFromArray, env, identityModel, identityModel.byteLength, handle);
  } finally {
    api.releaseSessionOptions(handle);
  }
  const caller = new RunCaller(api);
  const names = [cString("x"), cString("y")];
  const memory = [new Uint8Array(4), new Uint8Array(4)];
  const [input, output] = names.map((name, index) => ({
    name: Number(addressOf(name)),
    elementType: 1,
    address: Number(addressOf(memory[index]!)),
    byteLength: 4,
    shape: [1],
  }));
  return {
    sweep() {
      assert(names.length === 2 && memory.length === 2, "the memory of the sweeper is referenced");
      const flags = { session: Number(session), shrink: true, processors: [] };
      try {
        caller.run({ kind: "run", ...flags, inputs: [input!], outputs: [output!] });
      } finally {
        caller.end();
      }
    },
    close: () => void api.releaseSession(session),
  };
}

/** Makes the shared memory pool grow by the requested size instead of by powers of two. */
const extendAsRequested = 1;

function openEnvironment({ api }: OrtLibrary, options: OnnxRuntimeOptions): bigint {
  const threads = createHandle(api, api.createThreadingOptions);
  try {
    checkStatus(api, api.setGlobalIntraOpNumThreads(threads, options.intraOpThreadCount));
    checkStatus(api, api.setGlobalInterOpNumThreads(threads, options.interOpThreadCount));
    checkStatus(api, api.setGlobalSpinControl(threads, options.spin ? 1 : 0));
    return createHandle(api, api.createEnvWithGlobalThreadPools, logSeverity, "galatea", threads);
  } finally {
    api.releaseThreadingOptions(threads);
  }
}

/** GraphOptimizationLevel of the C API. */
const graphLevels = { none: 0, basic: 1, extended: 2, all: 99 } as const;

/**
 * Time in microseconds for which threads of a session's own pool spin before they sleep. It bridges the gap between two operators, and is
 * short enough that the threads release their cores soon after a run. The shared pool has no such setting: there, a run of MiniLM takes 7.1
 * ms instead of 6.2 ms (bench/rows/encoder.ts).
 */
const ownSpinUs = 50;

function makeSessionOptions(
  api: OrtApi,
  options: OnnxSessionOptions,
  { spin, placement }: { spin: boolean; placement: ThreadPlacement | null },
): bigint {
  const handle = createHandle(api, api.createSessionOptions);
  const config = new Map([
    // Allocates weights outside the shared memory pool: the pool never shrinks, and would keep an unloaded model's weights.
    ["session.use_device_allocator_for_initializers", "1"],
    ...(options.memoryArena ? [["session.use_env_allocators", "1"] as const] : []),
    ...(options.ownThreads === null
      ? []
      : [
          ["session.intra_op.allow_spinning", spin ? "1" : "0"] as const,
          ["session.intra_op.spin_duration_us", String(ownSpinUs)] as const,
        ]),
    // The library counts processors from 1.
    ...(placement === null
      ? []
      : [["session.intra_op_thread_affinities", placement.pool.map((processor) => processor + 1).join(";")] as const]),
    ...options.config,
  ]);
  try {
    checkStatus(api, api.setSessionGraphOptimizationLevel(handle, graphLevels[options.graphOptimization]));
    checkStatus(api, api.setSessionExecutionMode(handle, options.parallelExecution ? 1 : 0));
    if (options.ownThreads === null) {
      checkStatus(api, api.disablePerSessionThreads(handle));
    } else {
      checkStatus(api, api.setIntraOpNumThreads(handle, options.ownThreads.intraOp));
      checkStatus(api, api.setInterOpNumThreads(handle, options.ownThreads.interOp));
    }
    if (!options.memoryArena) checkStatus(api, api.disableCpuMemArena(handle));
    if (!options.memoryPattern) checkStatus(api, api.disableMemPattern(handle));
    for (const [key, value] of config) checkStatus(api, api.addSessionConfigEntry(handle, key, value));
    for (const provider of options.providers) appendProvider(api, handle, provider);
    return handle;
  } catch (error) {
    api.releaseSessionOptions(handle);
    throw error;
  }
}
