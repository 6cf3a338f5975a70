import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeDirectory } from "../base/index.ts";
import { readProcessStart, type ProcessIdentity } from "../processes/index.ts";
import { dataDirectories, usersDirectory } from "./directories.ts";
import type { PlatformPlace } from "./options.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** A platform that runs on this machine, as its own process describes it to the commands that call it. */
export interface RunningPlatform {
  readonly dataDirectory: string;
  /** An address that clients of this machine can reach. */
  readonly host: string;
  readonly port: number;
  readonly region: string;
  /** The file of its keys; null: they come from its environment. */
  readonly credentialsPath: string | null;
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
 * Describes this process's platform, in its data directory and in the list of this user's platforms, until disposed. Of a process that
 * was killed the description stays, and readers see that the process has ended. Rejects where a file cannot be written.
 */
export async function announcePlatform(
  described: Omit<RunningPlatform, "process">,
  env: Environment,
): Promise<Disposable> {
  const { pid } = process;
  const text = JSON.stringify({ ...described, process: { pid, startTicks: readProcessStart(pid) } });
  const list = listDirectory(env);
  await makeDirectory(list);
  // Reads the list for its effect: descriptions of processes that were killed are removed.
  listedPlatforms(env);
  using written = new DisposableStack();
  for (const path of [descriptionPath(described.dataDirectory), join(list, `${pid}.json`)]) {
    const partial = `${path}.${pid}`;
    writeFileSync(partial, text, { mode: 0o600 });
    renameSync(partial, path);
    written.defer(() => rmSync(path, { force: true }));
  }
  return written.move();
}

const descriptionPath = (dataDirectory: string) => join(dataDirectory, "platform.json");

/**
 * Finds the platform that a command means: over the data directory that was named; else at the port that was named; else over the default data
 * directory; else the only one that this user runs. Null where none runs there. Throws PlatformChoice where several run and none was named.
 */
export function findRunningPlatform(place: PlatformPlace, env: Environment): RunningPlatform | null {
  const own = readDescription(descriptionPath(dataDirectories(place.dataDirectory, env).root));
  if (place.dataDirectory !== null || (env["GALATEA_DATA"] ?? "") !== "") return own;
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
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** Null where there is none, or its process has ended. */
function readDescription(path: string): RunningPlatform | null {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return null;
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
