import { threadVariables } from "./thread-environment.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that every container and package installer gets from its parent. */
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
  // Visibility and numbering of GPUs.
  "CUDA_VISIBLE_DEVICES",
  "CUDA_DEVICE_ORDER",
  ...threadVariables,
];
const prefixes = ["PIP_", "UV_", "PYTHON"];

/** The environment of package installers in a platform's containers, as JSON. CreateModel rejects the name. */
const installerVariable = "GALATEA_INSTALLER_ENVIRONMENT";
/** Package indexes, which may include the operator's passwords, are not passed to models. */
const installerPrefixes = ["PIP_", "UV_"];

/**
 * Settings of this Node process, which would be wrong in a Node process of model code, and variables between a platform
 * and its containers.
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
 * and Python. Nothing else is passed on, so that the owner's secrets stay in the platform.
 */
export function passedEnvironment(from: Environment = process.env): Readonly<Record<string, string>> {
  return chosen(
    from,
    (name) =>
      name !== "UV_THREADPOOL_SIZE" && (names.includes(name) || prefixes.some((prefix) => name.startsWith(prefix))),
  );
}

/**
 * Returns the environment of a platform's containers. Their variables belong to tenants, but installers there write
 * environments that all containers share: so these get the operator's environment apart.
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
 * Returns the environment of package installers: in a platform's container the operator's, elsewhere this process's
 * own.
 */
export function installerEnvironment(from: Environment = process.env): Readonly<Record<string, string>> {
  const operators = from[installerVariable];
  return passedEnvironment(operators === undefined ? from : (JSON.parse(operators) as Environment));
}

/**
 * Returns the environment of model code: the server's whole one, as in Triton, where models run in children of the
 * server.
 */
export function modelEnvironment(from: Environment = process.env): Readonly<Record<string, string>> {
  return chosen(from, (name) => !ownNames.includes(name));
}

/** Returns the environment of our own processes that run models: in addition the directory of Node's compile cache. */
export function runnerEnvironment(from: Environment = process.env): Readonly<Record<string, string>> {
  return chosen(from, (name) => !ownNames.includes(name) || name === "NODE_COMPILE_CACHE");
}

function chosen(from: Environment, isPassed: (name: string) => boolean): Readonly<Record<string, string>> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(from)) if (value !== undefined && isPassed(name)) passed[name] = value;
  return passed;
}
