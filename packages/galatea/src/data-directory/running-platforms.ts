import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { asDiskError, makeDirectory, type Logger } from "@galatea/base";
import { readProcessStart, type ProcessIdentity } from "@galatea/base/processes";
import { dataDirectories, usersDirectory } from "./directories.ts";
import type { RestartOptions } from "../options/index.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** A platform that runs on this machine, as its own process describes it to the commands that call it. */
export interface RunningPlatform {
  readonly dataDirectory: string;
  /** An address that clients of this machine can reach. */
  readonly host: string;
  readonly port: number;
  readonly region: string;
  /** Absent in descriptions of releases before this field. */
  readonly version?: string;
  /** The file of its keys; null: they come from its environment. */
  readonly credentialsPath: string | null;
  /** When it was described: a platform that restarts has the same process as before. */
  readonly openedMs: number;
  readonly process: ProcessIdentity;
}

/** The message names what the caller has to choose, and is printed as it is. */
export class PlatformChoice extends Error {
  constructor(message: string) {
    super(message);
    this.name = "PlatformChoice";
  }
}

/** One file for each platform of this user, wherever its data directory is. */
function listDirectory(env: Environment): string {
  return join(usersDirectory(env), "platforms");
}

/**
 * Describes this process's platform, in its data directory and in the list of this user's platforms, until disposed. The description of a
 * killed process stays, and readers see that the process has ended. A file that cannot be written is logged: the platform runs without it.
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
      // Descriptions of processes that were killed are removed.
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
 * Finds the platform that a command means: over the data directory that was named; else at the port that was named; else over the default data
 * directory; else the only one that this user runs. Null where none runs there. Throws PlatformChoice where several run and none was named.
 */
export function findRunningPlatform(place: RestartOptions, env: Environment): RunningPlatform | null {
  const own = readDescription(descriptionPath(dataDirectories(place.data, env).root));
  if (place.data !== null || (env["GALATEA_DATA"] ?? "") !== "") return own;
  const all = listedPlatforms(env);
  if (place.port !== null) return all.find(({ port }) => port === place.port) ?? own;
  const [first = null, ...others] = all;
  if (own !== null || others.length === 0) return own ?? first;
  const list = all.map(({ port, dataDirectory }) => `port ${port} over '${dataDirectory}'`).join(", ");
  throw new PlatformChoice(`several platforms run: ${list}; say which with --data or --port`);
}

/** The platforms of this user that run. Descriptions of processes that have ended are removed. */
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

/** Returns null where there is none, or its process has ended. */
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
    // Cut short by a full disk: as good as none.
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
