import { resolveImage } from "./image-names.ts";
import { grantVariableError } from "./model-permissions.ts";

/** An environment variable that CreateModel rejects, with the reason. */
interface RefusedVariable {
  /** Name of the variable. A name that ends with an underscore is a prefix. */
  readonly name: string;
  readonly except?: readonly string[];
  readonly reason: string;
}

const loader = "the dynamic loader would load it into the server's own process, outside the confinement of models";
const node = "it configures the server's own process";
const shell = "shells that the server starts would run it";
const python = "it replaces the Python that the server starts";
const installer = "packages are installed for every container of the platform";
const own = "it configures the platform itself";
const listener = "a container listens on its own socket only";
const portVariable = "SAGEMAKER_BIND_TO_PORT";
const port = "the platform calls every container at port 8080";

/**
 * Variables that affect the server's own process, or processes that run without the isolation of models. All other
 * variables are passed to the model, including PYTHONPATH, OMP_NUM_THREADS, HOME, TMPDIR, LANG, AWS_* and the proxies.
 */
const refusedVariables: readonly RefusedVariable[] = [
  { name: "NODE_", except: ["NODE_ENV"], reason: node },
  { name: "UV_THREADPOOL_SIZE", reason: node },
  { name: "OPENSSL_CONF", reason: node },
  { name: "OPENSSL_MODULES", reason: node },
  { name: "OPENSSL_ENGINES", reason: node },
  { name: "SSLKEYLOGFILE", reason: node },
  { name: "LD_", reason: loader },
  { name: "DYLD_", reason: loader },
  { name: "GCONV_PATH", reason: loader },
  { name: "PATH", reason: "it would replace the programs that the server starts" },
  { name: "BASH_", reason: shell },
  { name: "BASHOPTS", reason: shell },
  { name: "SHELLOPTS", reason: shell },
  { name: "PS4", reason: shell },
  { name: "PYTHONHOME", reason: python },
  { name: "PYTHONEXECUTABLE", reason: python },
  { name: "PYTHONPLATLIBDIR", reason: python },
  { name: "PYTHONSTARTUP", reason: python },
  { name: "PYTHONINSPECT", reason: python },
  { name: "PIP_", reason: installer },
  { name: "UV_", reason: installer },
  {
    name: "GALATEA_",
    except: [
      "GALATEA_MODEL_MEMORY_BYTES",
      "GALATEA_MODEL_DISK_BYTES",
      "GALATEA_PYTHON_PACKAGES",
      "GALATEA_OBJECT_PREFIXES",
      "GALATEA_INVOKABLE_ENDPOINTS",
    ],
    reason: own,
  },
  { name: portVariable, reason: listener },
];

/** Variables that enable further listeners. They are allowed with a value that disables the listener. */
const listenerSwitches = new Set([
  "SAGEMAKER_TRITON_ALLOW_METRICS",
  "SAGEMAKER_TRITON_ALLOW_HTTP",
  "SAGEMAKER_TRITON_ALLOW_GRPC",
]);

/**
 * Server arguments that SAGEMAKER_TRITON_ADDITIONAL_ARGS may contain. All others are rejected: they open listeners,
 * choose programs, files and repositories, or weaken the isolation of models. Abbreviated names are rejected, too,
 * because the server would complete them.
 */
const modelArguments: ReadonlySet<string> = new Set([
  "backend-config",
  "buffer-manager-thread-count",
  "cuda-memory-pool-byte-size",
  "disable-auto-complete-config",
  "exit-on-error",
  "exit-timeout-secs",
  "http-max-input-size",
  "http-thread-count",
  "id",
  "load-model",
  "log-error",
  "log-format",
  "log-info",
  "log-verbose",
  "log-warning",
  "min-supported-compute-capability",
  "model-config-name",
  "model-load-thread-count",
  "pinned-memory-pool-byte-size",
  "python-threads",
  "queue-length-max",
  "sagemaker-thread-count",
  "strict-model-config",
  "strict-readiness",
  "unload-timeout-secs",
]);

/**
 * Returns CreateModel's error text for an environment variable; null if the variable is allowed. `image` is the image
 * of the container; null if it is unknown. An image of a user does not contain the platform's server, so that it may
 * have every variable except the port.
 */
export function environmentVariableError(name: string, value: string, image: string | null = null): string | null {
  const refusal = (reason: string) => `Environment variable ${name} is not allowed: ${reason}.`;
  if (image !== null && resolveImage(image) === null)
    return name === portVariable ? refusal(port) : grantVariableError(name, value);
  const row = refusedVariables.find(
    (each) =>
      (name === each.name || (each.name.endsWith("_") && name.startsWith(each.name))) &&
      !(each.except ?? []).includes(name),
  );
  if (row !== undefined) return refusal(row.reason);
  if (listenerSwitches.has(name) && !["false", "0", ""].includes(value.toLowerCase())) return refusal(listener);
  if (name === "SAGEMAKER_TRITON_ADDITIONAL_ARGS") return refusedArgument(name, value);
  return grantVariableError(name, value);
}

function refusedArgument(variable: string, value: string): string | null {
  for (const word of value.split(/\s+/)) {
    const argument = /^-[^=]*/.exec(word)?.[0];
    if (argument === undefined || (argument.startsWith("--") && modelArguments.has(argument.slice(2)))) continue;
    return `Argument ${argument} is not allowed in environment variable ${variable}: only arguments for the container's own models are allowed.`;
  }
  return null;
}
