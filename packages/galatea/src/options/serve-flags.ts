import { containerKinds, type ContainerKindName } from "@galatea/runtimes/container-runtimes";
import { backendFlags } from "./backend-flags.ts";
import { sharedFlags } from "./shared-flags.ts";
import {
  booleanFlag,
  choiceFlag,
  ignoredFlag,
  integerFlag,
  listFlag,
  numberFlag,
  parsedFlag,
  parsedListFlag,
  portFlag,
  switchFlag,
  textFlag,
  UsageError,
} from "./flag.ts";
import { forwardPattern } from "./forward-pattern.ts";
import { grpcFlags } from "./grpc-flags.ts";
import { parseRestrictions } from "./restricted-apis.ts";
import { unimplementedFlags } from "./unimplemented-flags.ts";

const gpu = "no effect on GPUs yet";
const oneLoop = "one event loop serves all connections; no thread count is needed";
/** The words that tritonserver's ParseIntBoolOption accepts. */
const booleanWords = new Map([
  ["true", 1],
  ["false", 0],
]);
const containerKindNames = ["tritonserver", ...(Object.keys(containerKinds) as ContainerKindName[])] as const;

/** The kinds of SageMaker containers that a server can replace. */
export type ServedContainerKind = (typeof containerKindNames)[number];

const text = textFlag({ about: "" });
const texts = listFlag({ about: "" });
const integer = integerFlag({ about: "" });

/** tritonserver's flags (release 2.51) that have no effect here. */
const inertFlags = {
  "http-thread-count": ignoredFlag(oneLoop, integerFlag({ min: 1, about: "" })),
  "sagemaker-thread-count": ignoredFlag(oneLoop, integerFlag({ min: 1, about: "" })),
  "pinned-memory-pool-byte-size": ignoredFlag(gpu, integer),
  "cuda-memory-pool-byte-size": ignoredFlag(gpu, texts),
  "min-supported-compute-capability": ignoredFlag(gpu, numberFlag({ about: "" })),
  "buffer-manager-thread-count": ignoredFlag("tensors are views; nothing is gathered by threads", integer),
  "repoagent-directory": ignoredFlag("a model with a repository agent is rejected", text),
  "cache-directory": ignoredFlag("directory of cache libraries; enabling a cache is rejected", text),
  "cuda-virtual-address-size": ignoredFlag(gpu, texts),
  "model-load-gpu-limit": ignoredFlag(gpu, texts),
  "enable-peer-access": ignoredFlag(gpu, booleanFlag({ about: "" })),
};

/** tritonserver's flags (release 2.51) under their own names, followed by this server's own flags. */
export const serveFlags = {
  "model-repository": listFlag({ alias: "model-store", about: "directory of models; may be given more than once" }),
  id: textFlag({ default: "triton", about: "server name in metadata" }),
  "exit-timeout-secs": integerFlag({
    unit: "seconds",
    default: 30,
    min: 0,
    about: "how long a stop waits for requests in flight",
  }),
  "exit-on-error": booleanFlag({ default: true, about: "exit when a model fails to load at start" }),
  "disable-auto-complete-config": switchFlag("do not complete configurations from model files"),
  "strict-model-config": booleanFlag({ about: "deprecated: true is --disable-auto-complete-config" }),
  "strict-readiness": booleanFlag({ default: true, about: "the server is ready only when every model is" }),
  "model-control-mode": parsedFlag(
    { default: "none", about: "none: load everything at start; explicit: load by request" },
    controlMode,
  ),
  "load-model": listFlag({ about: "load at start in explicit mode; `*` alone means all" }),
  "model-config-name": textFlag({ default: "", about: "use configs/<name>.pbtxt of a model if it exists" }),
  "model-load-thread-count": integerFlag({ default: 4, min: 1, about: "models loaded at the same time at start" }),
  "allow-http": booleanFlag({ default: true, about: "serve KServe v2 over HTTP" }),
  "http-address": textFlag({ default: "0.0.0.0", about: "address of the HTTP listener" }),
  "http-port": portFlag({ default: 8000, about: "port of the HTTP listener" }),
  "http-max-input-size": integerFlag({
    unit: "bytes",
    default: 64 * 2 ** 20,
    min: 1,
    about: "largest JSON tensor data",
  }),
  "http-header-forward-pattern": parsedFlag(
    {
      default: "",
      about: "regular expression; headers whose names match, in any case, become request parameters",
    },
    forwardPattern,
  ),
  "http-restricted-api": parsedListFlag(
    { about: "<api>[,<api>...]:<key>=<value>: these APIs need the header <key> with this value" },
    (input, name) => parseRestrictions(name, input, ""),
  ),
  "allow-metrics": booleanFlag({
    default: true,
    about: "serve Prometheus metrics",
    variable: "SAGEMAKER_TRITON_ALLOW_METRICS",
  }),
  "allow-cpu-metrics": booleanFlag({ default: true, about: "include CPU and memory gauges" }),
  "allow-gpu-metrics": booleanFlag({ default: true, about: "include gauges of NVIDIA GPUs, if there are any" }),
  "metrics-address": textFlag({ about: "address of the metrics listener (default: the HTTP address)" }),
  "metrics-port": portFlag({
    default: 8002,
    about: "port of the metrics listener",
    variable: "SAGEMAKER_TRITON_METRICS_PORT",
  }),
  "metrics-interval-ms": integerFlag({
    unit: "ms",
    default: 2000,
    min: 1,
    about: "interval of reading CPU and GPU gauges",
  }),
  "allow-sagemaker": booleanFlag({ default: false, about: "serve the SageMaker container contract" }),
  "sagemaker-port": portFlag({
    default: 8080,
    about: "port of the container contract",
    variable: "SAGEMAKER_BIND_TO_PORT",
  }),
  ...grpcFlags,
  "log-verbose": integerFlag({
    default: 0,
    min: 0,
    words: booleanWords,
    about: "verbose logging when above 0",
    variable: "SAGEMAKER_TRITON_LOG_VERBOSE",
  }),
  "log-info": booleanFlag({ default: true, about: "log at INFO", variable: "SAGEMAKER_TRITON_LOG_INFO" }),
  "log-warning": booleanFlag({ default: true, about: "log at WARNING", variable: "SAGEMAKER_TRITON_LOG_WARNING" }),
  "log-error": booleanFlag({ default: true, about: "log at ERROR", variable: "SAGEMAKER_TRITON_LOG_ERROR" }),
  "log-format": choiceFlag(["default", "ISO8601"], { default: "default", about: "how times are written" }),
  "log-file": textFlag({ default: "", about: "append all log lines to this file" }),
  ...inertFlags,
  ...unimplementedFlags,
  "sagemaker-socket": textFlag({ about: "serve the container contract on this Unix socket instead of a port" }),
  "container-kind": choiceFlag(containerKindNames, {
    default: "tritonserver",
    about: "the kind of container, for a server that is configured by its environment",
  }),
  "end-without-pings-secs": integerFlag({
    unit: "seconds",
    min: 1,
    max: 86_400,
    about: "stop when no /ping has arrived for this long; the platform of a container sends one every 10 s",
  }),
  "ml-root": textFlag({ default: "/opt/ml", about: "directory that stands for /opt/ml in requests" }),
  "request-memory-bytes": sharedFlags["request-memory-bytes"],
  "unload-timeout-secs": integerFlag({
    unit: "seconds",
    default: 30,
    min: 1,
    about: "how long an unload waits for requests in flight and for model code before it stops them",
  }),
  "queue-length-max": integerFlag({
    default: 10_000,
    min: 1,
    about:
      "the most requests of a model that are queued, or that wait for responses after their instance is free; further requests are rejected",
  }),
  ...backendFlags,
};

function controlMode(mode: string): "none" | "explicit" {
  if (mode === "none" || mode === "explicit") return mode;
  if (mode === "poll")
    throw new UsageError("--model-control-mode=poll is recognized but not implemented; use explicit or none");
  throw new UsageError(`invalid value for --model-control-mode: ${mode}`);
}
