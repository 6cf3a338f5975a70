import type { GraphOptions, PlanShapes } from "@galatea/tools/conversion";
import type { CompressionLevel, KeepaliveOptions, Restrictions } from "@galatea/server/protocols";
import type { ServedContainerKind } from "./container-environment.ts";

/** What `galatea serve` was asked for, checked and complete. */
export interface ServeOptions {
  readonly id: string;
  readonly repositories: readonly string[];
  readonly control: "none" | "explicit";
  /** `["*"]` for everything. */
  readonly loadModels: readonly string[];
  readonly modelConfigName: string;
  readonly strictReadiness: boolean;
  readonly exitOnError: boolean;
  readonly exitTimeoutSecs: number;
  readonly autoComplete: boolean;
  readonly loadsMax: number;
  readonly http: {
    readonly address: string;
    readonly port: number;
    /** See InferCallOptions. */
    readonly forwardedHeaders: RegExp | null;
  } | null;
  /** Parts of HTTP that answer only to requests with a header. */
  readonly httpRestrictions: Restrictions;
  readonly grpc: GrpcOptions | null;
  readonly inputBytesMax: number;
  readonly metrics: {
    readonly address: string;
    readonly port: number;
    readonly intervalMs: number;
    readonly hostGauges: boolean;
    readonly gpuGauges: boolean;
  } | null;
  readonly container: {
    readonly listen: { readonly socketPath: string } | { readonly address: string; readonly port: number };
    readonly mlRoot: string;
    /** No repository was given: the SAGEMAKER_* environment says what to serve, as the `serve` entry point does. */
    readonly fromEnvironment: boolean;
    /** Whose containers' language and archives: of another kind than Triton's only where the environment says what to serve. */
    readonly kind: ServedContainerKind;
  } | null;
  readonly log: {
    readonly verbose: boolean;
    readonly info: boolean;
    readonly warning: boolean;
    readonly error: boolean;
    readonly format: "default" | "ISO8601";
    readonly file: string;
  };
  /** Whose own this server is, and with whose process it ends; null where it is nobody's. */
  readonly parentPid: number | null;
  readonly backendConfig: readonly { readonly backend: string; readonly key: string; readonly value: string }[];
  readonly memoryBudgetBytes: number | null;
  /** What requests and answers in flight may take; null for a share of the machine's memory. */
  readonly requestMemoryBytes: number | null;
  readonly queueLengthMax: number;
  /** How long an unload waits for requests in flight and for model code. */
  readonly unloadTimeoutSecs: number;
  readonly python: string | null;
  /** What models find beside numpy and tokenizers, as pip reads it. */
  readonly pythonPackages: readonly string[];
  /** Threads of a model process's numerical libraries; null: what their variables say, see app/python.ts. */
  readonly pythonThreads: number | null;
  /** The most instances of a Python model, started as requests need them and memory allows; 0: only those of its configuration. */
  readonly pythonInstancesOnDemand: number;
  /** Where python-based backends lie, each in a folder of its name; null: there are none. */
  readonly backendDirectory: string | null;
  /** Modules that models find imported, whatever variables they set. */
  readonly pythonPreimport: readonly string[];
  /** ONNX models run in this process: faster by a hair, and each of them can end it. */
  readonly onnxInProcess: boolean;
  /** 0: an ONNX model's run may last for ever. */
  readonly onnxRunDeadlineSecs: number;
  readonly treeRunDeadlineSecs: number;
  readonly dataDirectory: string | null;
  readonly workers: WorkerSettings;
  /** Logged at the start. */
  readonly warnings: readonly string[];
}

/** What `galatea model` was asked for. */
export interface FrameworkOptions {
  readonly verb: "add" | "remove" | "list";
  /** Of the framework; "" for `list`. */
  readonly name: string;
  readonly dataDirectory: string | null;
  /** A directory of wheels in place of a package index. */
  readonly wheels: string | null;
  readonly anyBuild: boolean;
  /** What to make the environment with. */
  readonly python: string | null;
}

/** Where a platform listens, and the region of requests that name none, unless flags of `galatea up` say otherwise. */
export const platformDefaults = { host: "127.0.0.1", port: 8770, region: "us-east-1" } as const;

/** The platform that a command calls, as far as flags name it: null is taken from the platform that runs. */
export interface PlatformPlace {
  readonly host: string | null;
  readonly port: number | null;
  readonly region: string | null;
  /** A file of keys. */
  readonly credentials: string | null;
  readonly dataDirectory: string | null;
}

/** What `galatea endpoint` was asked for. */
export interface EndpointOptions extends PlatformPlace {
  readonly verb: "stop" | "start";
  readonly name: string;
}

/** What `galatea events` was asked for. */
export interface EventsOptions extends PlatformPlace {
  readonly follow: boolean;
  /** The cursor of an earlier event. */
  readonly after: number;
}

/** Options of `galatea backup` and `galatea restore`. */
export interface BackupOptions {
  /** The copy of the records. */
  readonly file: string;
  readonly dataDirectory: string | null;
}

/** What `galatea autoscale simulate` was asked for. */
export interface AutoscaleOptions {
  readonly policyFile: string;
  readonly alarmFile: string | null;
  /** Null: a recorded series. */
  readonly plan: string | null;
  readonly seriesFile: string;
  readonly recordedInstances: number;
  /** Metrics of the series that do not go with the number of instances. */
  readonly totals: readonly string[];
  /** Metrics of the policy that are the number of instances. */
  readonly instanceCounts: readonly string[];
  readonly metricPerLoad: number;
  readonly minCapacity: number;
  readonly maxCapacity: number;
  readonly startCapacity: number;
  readonly startupMs: number;
  readonly pageFile: string | null;
}

export interface EnvOptions extends PlatformPlace {
  /** Print what answers clients on hosts that they build themselves, too. */
  readonly proxy: boolean;
  /** Print what gives the shell back what it had. */
  readonly unset: boolean;
}

export interface GrpcOptions {
  readonly address: string;
  readonly port: number;
  readonly keepalive: KeepaliveOptions;
  readonly compressionLevel: CompressionLevel;
  readonly restrictions: Restrictions;
  /** Files in PEM form; null: no TLS. `clientRootsFile` asks clients for certificates of their own. */
  readonly tls: {
    readonly certificateFile: string;
    readonly keyFile: string;
    readonly clientRootsFile: string | null;
  } | null;
  /** Metadata whose whole name matches becomes request parameters; null: none. */
  readonly forwardedHeaders: RegExp | null;
}

/** How Python models are kept apart, and what is left to each. */
export interface WorkerSettings {
  /** Null: tenants in a container that its environment configures, else processes. */
  readonly confinement: "tenants" | "processes" | null;
  readonly users: { readonly first: number; readonly count: number } | null;
  readonly readPaths: readonly string[];
  readonly writePaths: readonly string[];
  /** Null: any, and listening too. */
  readonly tcpPorts: readonly number[] | null;
  /** Of one tenant; null: all tenants have the memory budget together. */
  readonly memoryBytesMax: number | null;
  readonly processesMax: number;
  readonly scratchBytesMax: number;
  /** Of unpacked Python environments together; as much of those of packages by name, and of scripts' packages. */
  readonly environmentBytesMax: number;
}

export interface UpOptions {
  readonly host: string;
  readonly port: number;
  /** Names in lower case that clients reach the platform by beside `host`. */
  readonly allowedHosts: readonly string[];
  /** Of web pages that may use OpenAI's API. */
  readonly allowedOrigins: readonly string[];
  /** The account whose everything on the platform is, and the region where nobody names another. */
  readonly owner: { readonly accountId: string; readonly region: string };
  /** A file of keys; null: those of the environment or of the data directory. */
  readonly credentials: string | null;
  /** Nobody's signature is verified. */
  readonly open: boolean;
  /** Open, also where others than this machine can reach it. */
  readonly insecure: boolean;
  readonly dataDirectory: string | null;
  /** Of the platform and, with a bound by its instance's memory, of each container; null for a share of the machine's memory. */
  readonly requestMemoryBytes: number | null;
  /** How long the instance of a serverless variant is kept without requests. */
  readonly serverlessIdleSecs: number;
  /** Days of which a snapshot of the records is kept; 0: none is made. */
  readonly snapshotDays: number;
  /** What the code of one endpoint may keep in the object store. */
  readonly endpointObjectsBytes: number;
  /** Endpoints that the code of every model may invoke; `*` for all. */
  readonly invokableEndpoints: readonly string[];
  /** Whether messages of topics go to programs of this machine. */
  readonly topicsToThisMachine: boolean;
  readonly topicsToPrivateNetworks: boolean;
  /** Flags of `serve` that say what containers run Python models with, and how they keep models apart. */
  readonly workerArguments: readonly string[];
}

/** What `galatea convert` was asked for. */
export interface ConvertOptions {
  /** A directory with config.json and weights, or an ONNX file. */
  readonly source: string;
  readonly graph: GraphOptions;
  /** Null for ONNX. */
  readonly plan: {
    /** What the user said of them; of an encoder they are known. */
    readonly shapes: PlanShapes | null;
    /** The longest sentence; null for what the encoder takes. */
    readonly tokensMax: number | null;
  } | null;
  readonly batchMax: number;
  readonly to:
    | { readonly kind: "file"; readonly path: string }
    | { readonly kind: "repository"; readonly repository: string; readonly name: string };
}
