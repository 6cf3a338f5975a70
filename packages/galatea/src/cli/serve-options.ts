import { containerKindNames, type ServedContainerKind, type ServeOptions } from "../app/index.ts";
import { UsageError, type FlagValue, type ParsedFlags } from "./flags.ts";
import { forwardPattern } from "./forward-pattern.ts";
import { grpcOptions } from "./grpc-flags.ts";
import { parseRestrictions } from "./restricted-apis.ts";
import { parsedPackages } from "./python-flags.ts";
import { workerOptions } from "./worker-flags.ts";

/** Null where KServe v2 is not to be served over HTTP. */
function httpOptions(values: ParsedFlags["values"]): ServeOptions["http"] {
  if (values.get("allow-http") !== true) return null;
  const pattern = "http-header-forward-pattern";
  return {
    address: values.get("http-address") as string,
    port: values.get("http-port") as number,
    forwardedHeaders: forwardPattern(pattern, (values.get(pattern) as string | undefined) ?? ""),
  };
}

/** The flags of `serve` as the composition wants them, with Triton's cross-checks. */
export function serveOptions(parsed: ParsedFlags): ServeOptions {
  const { values, lists, given } = parsed;
  const text = (name: string) => (values.get(name) as string | undefined) ?? "";
  const textOrNull = (name: string) => (values.get(name) as string | undefined) ?? null;
  const number = (name: string) => values.get(name) as number;
  const flag = (name: string) => values.get(name) === true;
  const { mode, loadModels } = modelControl(text("model-control-mode"), lists.get("load-model") ?? []);
  const container = given.has("sagemaker-socket") || flag("allow-sagemaker");
  const repositories = lists.get("model-repository") ?? [];
  if (repositories.length === 0 && !container) throw new UsageError("Error: --model-repository must be specified");
  const format = text("log-format");
  if (format !== "default" && format !== "ISO8601")
    throw new UsageError(`invalid argument for --log-format, got: ${format}`);
  return {
    id: text("id"),
    repositories,
    control: mode,
    loadModels,
    modelConfigName: text("model-config-name"),
    strictReadiness: flag("strict-readiness"),
    exitOnError: flag("exit-on-error"),
    exitTimeoutSecs: number("exit-timeout-secs"),
    autoComplete: !flag("disable-auto-complete-config") && !flag("strict-model-config"),
    loadsMax: number("model-load-thread-count"),
    http: httpOptions(values),
    httpRestrictions: parseRestrictions("http-restricted-api", lists.get("http-restricted-api") ?? [], ""),
    grpc: grpcOptions(parsed),
    inputBytesMax: number("http-max-input-size"),
    metrics: flag("allow-metrics")
      ? {
          address: textOrNull("metrics-address") ?? text("http-address"),
          port: number("metrics-port"),
          intervalMs: number("metrics-interval-ms"),
          hostGauges: flag("allow-cpu-metrics"),
          gpuGauges: flag("allow-gpu-metrics"),
        }
      : null,
    container: container ? containerOptions(parsed) : null,
    log: {
      verbose: number("log-verbose") > 0,
      info: flag("log-info"),
      warning: flag("log-warning"),
      error: flag("log-error"),
      format,
      file: text("log-file"),
    },
    backendConfig: parseBackendConfig(lists.get("backend-config") ?? []),
    memoryBudgetBytes: optionalNumber(values.get("memory-budget-bytes")),
    requestMemoryBytes: optionalNumber(values.get("request-memory-bytes")),
    queueLengthMax: number("queue-length-max"),
    unloadTimeoutSecs: number("unload-timeout-secs"),
    python: textOrNull("python"),
    backendDirectory: textOrNull("backend-directory"),
    pythonPackages: parsedPackages(lists.get("python-packages") ?? []),
    pythonThreads: optionalNumber(values.get("python-threads")),
    pythonInstancesOnDemand: number("python-instances-on-demand"),
    pythonPreimport: (lists.get("python-preimport") ?? []).flatMap((names) => names.split(",")),
    onnxInProcess: flag("onnx-in-process"),
    onnxRunDeadlineSecs: number("onnx-run-deadline-secs"),
    treeRunDeadlineSecs: number("tree-run-deadline-secs"),
    dataDirectory: textOrNull("data"),
    parentPid: optionalNumber(values.get("parent-pid")),
    workers: workerOptions(parsed),
    warnings: warningsOf(given),
  };
}

function containerOptions({ values, lists, given }: ParsedFlags): NonNullable<ServeOptions["container"]> {
  const text = (name: string) => (values.get(name) as string | undefined) ?? "";
  const repositories = lists.get("model-repository") ?? [];
  return {
    listen: given.has("sagemaker-socket")
      ? { socketPath: text("sagemaker-socket") }
      : { address: text("http-address"), port: values.get("sagemaker-port") as number },
    mlRoot: text("ml-root"),
    fromEnvironment: repositories.length === 0,
    kind: containerKind(text("container-kind"), repositories),
  };
}

function containerKind(name: string, repositories: readonly string[]): ServedContainerKind {
  const kind = containerKindNames.find((each) => each === name);
  if (kind === undefined)
    throw new UsageError(`invalid value for --container-kind: ${name}; there are: ${containerKindNames.join(", ")}`);
  if (kind !== "tritonserver" && repositories.length > 0)
    throw new UsageError(`--container-kind=${kind} serves what lies below --ml-root, and no --model-repository`);
  return kind;
}

function modelControl(
  mode: string,
  loadModels: readonly string[],
): { mode: "none" | "explicit"; loadModels: readonly string[] } {
  if (mode === "poll")
    throw new UsageError("--model-control-mode=poll is known but not built yet; use explicit, or none");
  if (mode !== "none" && mode !== "explicit") throw new UsageError(`invalid value for --model-control-mode: ${mode}`);
  if (loadModels.length > 0 && mode !== "explicit")
    throw new UsageError("Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.");
  if (loadModels.includes("*") && loadModels.length > 1)
    throw new UsageError("Error: Wildcard model name '*' must be the ONLY startup model if specified at all.");
  return { mode, loadModels };
}

/** What whoever gave these flags should know although the server starts. */
function warningsOf(given: ReadonlySet<string>): readonly string[] {
  const warnings: string[] = [];
  if (given.has("strict-model-config")) {
    warnings.push("'--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead.");
  }
  return warnings;
}

function optionalNumber(value: FlagValue | undefined): number | null {
  return value === undefined ? null : (value as number);
}

/** `<backend>,<key>=<value>` or the global `<key>=<value>`; "" is the global backend. */
function parseBackendConfig(texts: readonly string[]): ServeOptions["backendConfig"] {
  return texts.map((text) => {
    const comma = text.indexOf(",");
    const setting = text.slice(comma + 1);
    const equals = setting.indexOf("=");
    if (equals <= 0)
      throw new UsageError(
        `--backend-config option format is '<backend name>,<setting>=<value>' or '<setting>=<value>'. Got ${text}`,
      );
    return {
      backend: comma === -1 ? "" : text.slice(0, comma),
      key: setting.slice(0, equals),
      value: setting.slice(equals + 1),
    };
  });
}
