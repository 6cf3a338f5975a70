import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

/** The paths below the data directory. */
export interface DataDirectories {
  readonly root: string;
  readonly python: string;
  /**
   * Directories that are searched for environments of frameworks, in order: the data directory's own, then the
   * machine's.
   */
  readonly frameworks: readonly string[];
  readonly cache: string;
  readonly objects: string;
  readonly records: string;
  /** Copies of the records from which a damaged database continues. */
  readonly snapshots: string;
  readonly logs: string;
  readonly instances: string;
  readonly clients: string;
}

/** Returns the root and the directories that a platform makes in it. */
export function platformDirectories({ frameworks: _searched, ...own }: DataDirectories): readonly string[] {
  return Object.values(own);
}

/** Names that Galatea gives to entries of the root; `credentials` also to copies that it keeps aside. */
export const rootEntries =
  /^(?:python|frameworks|cache|objects|records|snapshots|logs|instances|clients|(?:python|script)-packages|credentials(?:\..*)?|platforms|(?:platform|format)\.json(?:\.\d+)?|lost\+found)$/;

/** Returns the file of the platform's own key, which the first process that needs it creates. */
export function credentialsPath({ root }: DataDirectories): string {
  return join(root, "credentials");
}

/** The paths of the platform's databases. */
export interface DatabasePaths {
  readonly records: string;
  readonly metrics: string;
  /** Names the PostgreSQL database that has the records instead of `records`; absent if none has. */
  readonly recordsMoved: string;
}

export function databasePaths({ records }: DataDirectories): DatabasePaths {
  const path = join(records, "galatea.db");
  return { records: path, metrics: join(records, "metrics.db"), recordsMoved: `${path}.moved` };
}

/** The machine's default directory of frameworks, overridden by `$GALATEA_FRAMEWORKS`: root's is for all users. */
const frameworksOfRoot = "/var/lib/galatea/frameworks";

/** Returns the directory in which `galatea model add` makes environments unless a data directory is given. Platforms and servers over every data directory search it. */
export function machineFrameworks(env: Readonly<Record<string, string | undefined>>): string {
  const named = env["GALATEA_FRAMEWORKS"] ?? "";
  if (named !== "") return resolve(named);
  return process.getuid?.() === 0 ? frameworksOfRoot : join(usersDirectory(env), "frameworks");
}

/** Returns the default data directory of this user. */
export function usersDirectory({ XDG_DATA_HOME: shared }: Readonly<Record<string, string | undefined>>): string {
  // The XDG specification: a path that is empty or relative is ignored.
  const base = shared !== undefined && isAbsolute(shared) ? shared : join(homedir(), ".local", "share");
  return join(base, "galatea");
}

/**
 * Returns the directories below `given`, else `$GALATEA_DATA`, else `$XDG_DATA_HOME/galatea`, else
 * `~/.local/share/galatea`. Relative paths are resolved from the working directory.
 */
export function dataDirectories(
  given: string | null,
  env: Readonly<Record<string, string | undefined>>,
): DataDirectories {
  const root = resolve(given ?? (env["GALATEA_DATA"] || usersDirectory(env)));
  const named = (env["GALATEA_FRAMEWORKS"] ?? "") !== "";
  const frameworks = [join(root, "frameworks"), machineFrameworks(env), ...(named ? [] : [frameworksOfRoot])];
  return {
    root,
    python: join(root, "python"),
    frameworks: [...new Set(frameworks)],
    cache: join(root, "cache"),
    objects: join(root, "objects"),
    records: join(root, "records"),
    snapshots: join(root, "snapshots"),
    logs: join(root, "logs"),
    instances: join(root, "instances"),
    clients: join(root, "clients"),
  };
}
