import { threadVariables } from "./thread-environment.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that every container and package installer inherits. */
const names: readonly string[] = [
  "PATH",
  "HOME",
  "LANG",
  "LC_ALL",
  "TZ",
  "TMPDIR",
  "LD_LIBRARY_PATH",
  "NODE_COMPILE_CACHE",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "ALL_PROXY",
  "NO_PROXY",
  "http_proxy",
  "https_proxy",
  "all_proxy",
  "no_proxy",
  "SSL_CERT_FILE",
  "TOKENIZERS_PARALLELISM",
  // Visibility and numbering of GPUs in CUDA.
  "CUDA_VISIBLE_DEVICES",
  "CUDA_DEVICE_ORDER",
  ...threadVariables,
];
const prefixes = ["PIP_", "UV_", "PYTHON"];

/**
 * Variable with the environment of package installers in a platform's containers, as JSON. CreateModel rejects a model
 * that sets it.
 */
const installerVariable = "GALATEA_INSTALLER_ENVIRONMENT";
/**
 * Prefixes of the settings of package installers. Models do not get them, because URLs of package indexes may contain
 * the operator's passwords.
 */
const installerPrefixes = ["PIP_", "UV_"];

/**
 * Settings of this Node process, which would be wrong for a Node process of model code, and variables that a platform
 * sets for its containers.
 */
const ownNames = [
  "NODE_OPTIONS",
  "NODE_COMPILE_CACHE",
  "NODE_CHANNEL_FD",
  "NODE_UNIQUE_ID",
  "UV_THREADPOOL_SIZE",
  "GALATEA_FRAMEWORKS",
  installerVariable,
];

/**
 * Returns the environment of containers and package installers: the listed names, and the configuration of installers
 * and Python. No other variable is included, so that the owner's secrets stay in the platform.
 */
export function passedEnvironment(from: Environment = process.env): Readonly<Record<string, string>> {
  return chosen(
    from,
    (name) =>
      name !== "UV_THREADPOOL_SIZE" && (names.includes(name) || prefixes.some((prefix) => name.startsWith(prefix))),
  );
}

/**
 * Returns the environment of a platform's containers. A container's variables belong to its tenant, but its installers
 * write environments that all containers share. Installers therefore get the operator's environment, which is in a
 * separate variable.
 */
export function platformContainerEnvironment(
  operators: Readonly<Record<string, string>>,
  owners: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const isInstallers = (name: string) => installerPrefixes.some((prefix) => name.startsWith(prefix));
  const kept = Object.fromEntries(Object.entries(operators).filter(([name]) => !isInstallers(name)));
  return { ...kept, ...owners, [installerVariable]: JSON.stringify(operators) };
}

/**
 * Returns the environment of package installers. In a platform's container, it is the operator's environment;
 * elsewhere, it is that of this process.
 */
export function installerEnvironment(from: Environment = process.env): Readonly<Record<string, string>> {
  const operators = from[installerVariable];
  return passedEnvironment(operators === undefined ? from : (JSON.parse(operators) as Environment));
}

/**
 * Returns the environment of model code: all variables of the server except those of `ownNames`. As in Triton, models
 * run in child processes of the server.
 */
export function modelEnvironment(from: Environment = process.env): Readonly<Record<string, string>> {
  return chosen(from, (name) => !ownNames.includes(name));
}

/**
 * Returns the environment of this product's processes that run models: that of model code, and the directory of Node's
 * compile cache.
 */
export function runnerEnvironment(from: Environment = process.env): Readonly<Record<string, string>> {
  return chosen(from, (name) => !ownNames.includes(name) || name === "NODE_COMPILE_CACHE");
}

function chosen(from: Environment, isPassed: (name: string) => boolean): Readonly<Record<string, string>> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(from)) if (value !== undefined && isPassed(name)) passed[name] = value;
  return passed;
}
