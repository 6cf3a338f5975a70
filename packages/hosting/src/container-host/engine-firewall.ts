import { readdir, readFile } from "node:fs/promises";

const configPathDefault = "/etc/docker/daemon.json";

/** Returns the arguments of each running `dockerd` of this machine. */
export async function dockerdArguments(): Promise<readonly (readonly string[])[]> {
  const ids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  // A process that ends meanwhile has no arguments.
  const lines = await Promise.all(ids.map((id) => readFile(`/proc/${id}/cmdline`, "utf8").catch(() => "")));
  const words = lines.map((line) => line.split("\0"));
  return words.filter(([program = ""]) => /(?:^|\/)dockerd$/.test(program)).map(([, ...rest]) => rest);
}

/**
 * Returns where the iptables rules of the Docker engine at `address` are switched off: a flag of dockerd or its configuration file. Null if
 * they are on, or if no such engine is found. `readConfig` resolves with the text of a configuration file, or null if it cannot be read.
 */
export async function findDisabledIptables(
  address: string,
  engines: readonly (readonly string[])[],
  readConfig: (path: string) => Promise<string | null>,
): Promise<string | null> {
  const socket = address.replace(/^unix:\/\//, "");
  const isNamed = (args: readonly string[]) => args.some((word) => word.endsWith(`unix://${socket}`));
  // systemd passes the socket to the engine, which has no flag with its path then.
  const args = engines.find(isNamed) ?? (engines.length === 1 ? engines[0] : undefined);
  if (args === undefined) return null;
  if (args.some((word) => /^--?iptables=(?:false|0|f)$/i.test(word))) return "dockerd's flag --iptables=false";
  const path = valueOf(args, "config-file") ?? configPathDefault;
  const text = await readConfig(path);
  return text !== null && /"iptables"\s*:\s*false/.test(text) ? `"iptables": false in ${path}` : null;
}

/** Returns the value of a flag: `--name=value` or `--name value`. */
function valueOf(args: readonly string[], name: string): string | undefined {
  const joined = args.find((word) => word.startsWith(`--${name}=`));
  if (joined !== undefined) return joined.slice(name.length + 3);
  const index = args.indexOf(`--${name}`);
  return index === -1 ? undefined : args[index + 1];
}
