import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { asDiskError, makeDirectory, type Logger } from "@galatea/base";
import { readProcessStart, type ProcessIdentity } from "@galatea/base/processes";
import { dataDirectories, usersDirectory } from "./directories.ts";
import type { RestartOptions } from "../options/index.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** A platform that runs on this machine. Its own process writes this description for the commands that call it. */
export interface RunningPlatform {
  readonly dataDirectory: string;
  /** An address at which clients of this machine can reach the platform. */
  readonly host: string;
  readonly port: number;
  readonly region: string;
  /** The platform's version; absent in descriptions that older releases wrote. */
  readonly version?: string;
  /** The path of the platform's credentials file; null: its environment contains the keys. */
  readonly credentialsPath: string | null;
  /** Time of the description. After a restart, the process is the same but this time is newer. */
  readonly openedMs: number;
  readonly process: ProcessIdentity;
}

/** An error for an ambiguous choice of a platform. The message names the flags to use, and is printed unchanged. */
export class PlatformChoice extends Error {
  constructor(message: string) {
    super(message);
    this.name = "PlatformChoice";
  }
}

/**
 * Returns the directory that contains one file for each platform of this user, wherever the platform's data directory
 * is.
 */
function listDirectory(env: Environment): string {
  return join(usersDirectory(env), "platforms");
}

/**
 * Writes the description of this process's platform to its data directory and to this user's list of platforms.
 * Disposal removes both. The description of a killed process remains, and readers recognise that the process has ended.
 * If a file cannot be written, that is logged, and the platform runs without it.
 */
export async function announcePlatform(
  described: Omit<RunningPlatform, "process" | "openedMs">,
  { env, log }: { readonly env: Environment; readonly log: Logger },
): Promise<Disposable> {
  const { pid } = process;
  const text = JSON.stringify({
    ...described,
    openedMs: Date.now(),
    process: { pid, startTicks: readProcessStart(pid) },
  });
  using written = new DisposableStack();
  const own = descriptionPath(described.dataDirectory);
  const listed = join(listDirectory(env), `${pid}.json`);
  for (const [path, needed] of [
    [own, "--port, --data and --credentials"],
    [listed, "--data"],
  ] as const) {
    try {
      await makeDirectory(dirname(path));
      const partial = `${path}.${pid}`;
      writeFileSync(partial, text, { mode: 0o600 });
      renameSync(partial, path);
      written.defer(() => rmSync(path, { force: true }));
      // Reading the list removes the descriptions of killed processes.
      if (path === listed) listedPlatforms(env);
    } catch (error) {
      const reason = (asDiskError(error, `'${path}'`) as Error).message;
      log.warning(`\`galatea env\` needs ${needed} to find this platform: ${reason}`);
    }
  }
  return written.move();
}

const descriptionPath = (dataDirectory: string) => join(dataDirectory, "platform.json");

/**
 * Finds the platform that a command calls. A given data directory has priority, then a given port, then the default
 * data directory, then the only platform that this user runs. Returns null if no platform runs there. Throws
 * PlatformChoice if several platforms run and nothing selects one.
 */
export function findRunningPlatform(location: RestartOptions, env: Environment): RunningPlatform | null {
  const own = readDescription(descriptionPath(dataDirectories(location.data, env).root));
  if (location.data !== null || (env["GALATEA_DATA"] ?? "") !== "") return own;
  const all = listedPlatforms(env);
  if (location.port !== null) return all.find(({ port }) => port === location.port) ?? own;
  const [first = null, ...others] = all;
  if (own !== null || others.length === 0) return own ?? first;
  const list = all.map(({ port, dataDirectory }) => `port ${port} over '${dataDirectory}'`).join(", ");
  throw new PlatformChoice(`several platforms run: ${list}; say which with --data or --port`);
}

/** Returns the running platforms of this user. Removes the descriptions of processes that have ended. */
function listedPlatforms(env: Environment): readonly RunningPlatform[] {
  const list = listDirectory(env);
  return namesIn(list).flatMap((name) => {
    const path = join(list, name);
    const found = readDescription(path);
    if (found === null && name.endsWith(".json")) rmSync(path, { force: true });
    return found ?? [];
  });
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
}

function isAbsent(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
}

/** Reads a description. Returns null if there is none or if its process has ended. */
function readDescription(path: string): RunningPlatform | null {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (isAbsent(error)) return null;
    throw error;
  }
  try {
    const found = JSON.parse(text) as RunningPlatform;
    return readProcessStart(found.process.pid) === found.process.startTicks ? found : null;
  } catch (error) {
    // A full disk has truncated the file, so it is treated as missing.
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
