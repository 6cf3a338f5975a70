import { containerKindNames } from "../app/index.ts";
import { dataDefault, portMax, requestMemoryFlag, type Flag } from "./flags.ts";
import { grpcFlags } from "./grpc-flags.ts";
import { pythonFlag, pythonPackagesFlag } from "./python-flags.ts";
import { confinementFlag, workerFlags } from "./worker-flags.ts";
import { unbuiltFlags } from "./unbuilt-flags.ts";

const gpu = { accepted: "nothing on GPUs is configured by it yet" };
const oneLoop = { accepted: "one event loop serves all connections; no thread count is needed" };
/** tritonserver's ParseIntBoolOption. */
const booleanWords = new Map([
  ["true", 1],
  ["false", 0],
]);

/** tritonserver's flags under their own names (2.51 line), and ours after them. */
export const serveFlags: readonly Flag[] = [
  {
    name: "model-repository",
    alias: "model-store",
    kind: "string",
    repeatable: true,
    about: "directory of models; may be given more than once",
  },
  { name: "id", kind: "string", default: "triton", about: "server name in metadata" },
  {
    name: "exit-timeout-secs",
    kind: "integer",
    default: 30,
    min: 0,
    about: "how long a stop waits for requests in flight",
  },
  { name: "exit-on-error", kind: "boolean", default: true, about: "exit when a model fails to load at start" },
  { name: "disable-auto-complete-config", kind: "switch", about: "do not complete configurations from model files" },
  { name: "strict-readiness", kind: "boolean", default: true, about: "ready only when every model is" },
  {
    name: "model-control-mode",
    kind: "string",
    default: "none",
    about: "none: load everything at start; explicit: load by request",
  },
  {
    name: "load-model",
    kind: "string",
    repeatable: true,
    about: "load at start in explicit mode; `*` alone means all",
  },
  { name: "model-config-name", kind: "string", default: "", about: "use configs/<name>.pbtxt where a model has it" },
  {
    name: "model-load-thread-count",
    kind: "integer",
    default: 4,
    min: 1,
    about: "models loaded at the same time at start",
  },
  { name: "allow-http", kind: "boolean", default: true, about: "serve KServe v2 over HTTP" },
  { name: "http-address", kind: "string", default: "0.0.0.0", about: "address of the HTTP listener" },
  { name: "http-port", kind: "integer", default: 8000, min: 0, max: portMax, about: "port of the HTTP listener" },
  { name: "http-thread-count", kind: "integer", default: 8, min: 1, about: "accepted", status: oneLoop },
  {
    name: "http-max-input-size",
    kind: "integer",
    default: 67108864,
    min: 1,
    about: "largest JSON tensor data in bytes",
  },
  {
    name: "http-header-forward-pattern",
    kind: "string",
    default: "",
    about: "regular expression; headers whose names it finds, in any case, become request parameters",
  },
  {
    name: "http-restricted-api",
    kind: "string",
    repeatable: true,
    about: "<api>[,<api>...]:<key>=<value>: these answer only to requests with the header <key>",
  },
  { name: "allow-metrics", kind: "boolean", default: true, about: "serve Prometheus metrics" },
  { name: "allow-cpu-metrics", kind: "boolean", default: true, about: "include CPU and memory gauges" },
  {
    name: "allow-gpu-metrics",
    kind: "boolean",
    default: true,
    about: "include gauges of NVIDIA GPUs where there are some",
  },
  { name: "metrics-address", kind: "string", about: "address of the metrics listener (default: the HTTP address)" },
  { name: "metrics-port", kind: "integer", default: 8002, min: 0, max: portMax, about: "port of the metrics listener" },
  {
    name: "metrics-interval-ms",
    kind: "integer",
    default: 2000,
    min: 1,
    about: "how often gauges of CPU and GPUs are read",
  },
  { name: "allow-sagemaker", kind: "boolean", default: false, about: "serve the SageMaker container contract" },
  {
    name: "sagemaker-port",
    kind: "integer",
    default: 8080,
    min: 0,
    max: portMax,
    about: "port of the container contract",
  },
  { name: "sagemaker-thread-count", kind: "integer", default: 8, min: 1, about: "accepted", status: oneLoop },
  ...grpcFlags,
  {
    name: "log-verbose",
    kind: "integer",
    default: 0,
    min: 0,
    words: booleanWords,
    about: "verbose logging when above 0",
  },
  { name: "log-info", kind: "boolean", default: true, about: "log at INFO" },
  { name: "log-warning", kind: "boolean", default: true, about: "log at WARNING" },
  { name: "log-error", kind: "boolean", default: true, about: "log at ERROR" },
  { name: "log-format", kind: "string", default: "default", about: "default or ISO8601" },
  { name: "log-file", kind: "string", default: "", about: "append all log lines to this file" },
  { name: "backend-config", kind: "string", repeatable: true, about: "<backend>,<key>=<value> or <key>=<value>" },
  { name: "backend-directory", kind: "string", about: "python-based backends: <directory>/<backend>/model.py" },
  { name: "pinned-memory-pool-byte-size", kind: "integer", about: "accepted", status: gpu },
  { name: "cuda-memory-pool-byte-size", kind: "string", repeatable: true, about: "accepted", status: gpu },
  { name: "min-supported-compute-capability", kind: "number", about: "accepted", status: gpu },
  {
    name: "buffer-manager-thread-count",
    kind: "integer",
    about: "accepted",
    status: { accepted: "tensors are views; nothing is gathered by threads" },
  },
  {
    name: "repoagent-directory",
    kind: "string",
    about: "accepted",
    status: { accepted: "a model that asks for a repository agent is refused by name" },
  },
  {
    name: "cache-directory",
    kind: "string",
    about: "accepted",
    status: { accepted: "where caches are looked for; asking for one is refused" },
  },
  { name: "cuda-virtual-address-size", kind: "string", repeatable: true, about: "accepted", status: gpu },
  { name: "model-load-gpu-limit", kind: "string", repeatable: true, about: "accepted", status: gpu },
  { name: "enable-peer-access", kind: "boolean", about: "accepted", status: gpu },
  {
    name: "strict-model-config",
    kind: "boolean",
    default: false,
    about: "deprecated: true is --disable-auto-complete-config",
  },
  ...unbuiltFlags,
  {
    name: "sagemaker-socket",
    kind: "string",
    about: "serve the container contract on this Unix socket instead of a port",
  },
  {
    name: "container-kind",
    kind: "string",
    default: "tritonserver",
    about: `whose container this is where its environment says what to serve: ${containerKindNames.join(", ")}`,
  },
  {
    name: "parent-pid",
    kind: "integer",
    min: 1,
    about: "the process that starts this one, with which it ends at once",
  },
  { name: "ml-root", kind: "string", default: "/opt/ml", about: "directory that /opt/ml/... on the wire means" },
  { name: "memory-budget-bytes", kind: "integer", min: 1, about: "refuse to load models beyond this much memory" },
  requestMemoryFlag,
  pythonFlag,
  pythonPackagesFlag,
  {
    name: "python-threads",
    kind: "integer",
    min: 1,
    about:
      "threads of each Python model process's numerical libraries, where OMP_NUM_THREADS and the like do not say (default: numpy 1, others all)",
  },
  {
    name: "python-instances-on-demand",
    kind: "integer",
    default: 0,
    min: 0,
    max: 1024,
    about:
      "the most instances of a Python model; those beyond its configuration are started while all others execute, if memory allows (0: none beyond it)",
  },
  {
    name: "python-preimport",
    kind: "string",
    repeatable: true,
    about: "modules, after their first use found imported by models whatever variables those set: quicker loads",
  },
  {
    name: "data",
    kind: "string",
    about: `directory for environments and caches (default: ${dataDefault})`,
  },
  {
    name: "unload-timeout-secs",
    kind: "integer",
    default: 30,
    min: 1,
    about: "how long an unload waits for requests in flight and for model code before it ends them",
  },
  {
    name: "queue-length-max",
    kind: "integer",
    default: 10000,
    min: 1,
    about: "requests that may wait for a model without a queue limit of its own",
  },
  confinementFlag,
  ...workerFlags,
];
