/** What every process needs of its parent's environment. Nothing else is passed on: secrets stay where they are. */
const names = [
  "PATH",
  "HOME",
  "LANG",
  "LC_ALL",
  "TMPDIR",
  "LD_LIBRARY_PATH",
  "NODE_COMPILE_CACHE",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
  "SSL_CERT_FILE",
];
const prefixes = ["PIP_", "UV_", "PYTHON"];

/** The environment of child processes: those names, and what package installers and Python itself are configured by. */
export function passedEnvironment(): Readonly<Record<string, string>> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (value === undefined || name === "UV_THREADPOOL_SIZE") continue;
    if (names.includes(name) || prefixes.some((prefix) => name.startsWith(prefix))) passed[name] = value;
  }
  return passed;
}
