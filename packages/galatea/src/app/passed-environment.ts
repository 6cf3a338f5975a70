import { threadVariables } from "./thread-environment.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** What every container and every package installer needs of its parent's environment. */
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
  // Which GPUs a process may see, and how it numbers them.
  "CUDA_VISIBLE_DEVICES",
  "CUDA_DEVICE_ORDER",
  ...threadVariables,
];
const prefixes = ["PIP_", "UV_", "PYTHON"];

/** What a platform's containers run package installers with, as JSON. CreateModel refuses the name. */
const installerVariable = "GALATEA_INSTALLER_ENVIRONMENT";
/** Where packages come from, which may hold the operator's passwords, is no matter of models. */
const installerPrefixes = ["PIP_", "UV_"];

/** Settings of this very Node process, which would be wrong in a Node that model code starts, and what a platform gives its containers alone. */
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
 * The environment of containers and package installers: those names, and what installers and Python itself are configured by.
 * Nothing else is passed on: secrets of the platform's owner stay with the platform.
 */
export function passedEnvironment(from: Environment = process.env): Readonly<Record<string, string>> {
  return chosen(
    from,
    (name) =>
      name !== "UV_THREADPOOL_SIZE" && (names.includes(name) || prefixes.some((prefix) => name.startsWith(prefix))),
  );
}

/**
 * A platform's containers have their owners' variables on top of the platform's own. Installers there write environments that all containers
 * share, and are configured by the operator alone: by what the platform had before, which each container is given beside its own.
 */
export function platformContainerEnvironment(
  operators: Readonly<Record<string, string>>,
  owners: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const isInstallers = (name: string) => installerPrefixes.some((prefix) => name.startsWith(prefix));
  const kept = Object.fromEntries(Object.entries(operators).filter(([name]) => !isInstallers(name)));
  return { ...kept, ...owners, [installerVariable]: JSON.stringify(operators) };
}

/** What package installers run with: in a platform's container the operator's environment, elsewhere this process's own. */
export function installerEnvironment(from: Environment = process.env): Readonly<Record<string, string>> {
  const operators = from[installerVariable];
  return passedEnvironment(operators === undefined ? from : (JSON.parse(operators) as Environment));
}

/** The environment of model code: the server's whole one, as in Triton, where models run in children of the server. */
export function modelEnvironment(from: Environment = process.env): Readonly<Record<string, string>> {
  return chosen(from, (name) => !ownNames.includes(name));
}

/** The environment of processes of our own that run models: the same, and where Node keeps what it has compiled. */
export function runnerEnvironment(from: Environment = process.env): Readonly<Record<string, string>> {
  return chosen(from, (name) => !ownNames.includes(name) || name === "NODE_COMPILE_CACHE");
}

function chosen(from: Environment, isPassed: (name: string) => boolean): Readonly<Record<string, string>> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(from)) if (value !== undefined && isPassed(name)) passed[name] = value;
  return passed;
}
