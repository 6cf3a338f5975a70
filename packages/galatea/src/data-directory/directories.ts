import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

/** The paths in the data directory. */
export interface DataDirectories {
  readonly root: string;
  readonly python: string;
  /** Directories that are searched for frameworks, in order: the data directory's, then the machine's. */
  readonly frameworks: readonly string[];
  readonly cache: string;
  readonly objects: string;
  readonly records: string;
  /** Copies of the records, with which a platform continues if its database is damaged. */
  readonly snapshots: string;
  readonly logs: string;
  readonly instances: string;
  readonly clients: string;
}

/** Returns the root and the directories that a platform creates in it. */
export function platformDirectories({ frameworks: _searched, ...own }: DataDirectories): readonly string[] {
  return Object.values(own);
}

/** Names of Galatea's entries in the root. For `credentials`, this includes the damaged copies that are kept. */
export const rootEntries =
  /^(?:python|frameworks|cache|objects|records|snapshots|logs|instances|clients|(?:python|script)-packages|credentials(?:\..*)?|platforms|(?:platform|format)\.json(?:\.\d+)?|lost\+found)$/;

/** Returns the path of the file with the platform's own key. The first process that needs the key creates the file. */
export function credentialsPath({ root }: DataDirectories): string {
  return join(root, "credentials");
}

/** The paths of the platform's databases. */
export interface DatabasePaths {
  readonly records: string;
  readonly metrics: string;
  /**
   * The file that names the PostgreSQL database to which the records were moved; it is absent if they were not moved.
   */
  readonly recordsMoved: string;
}

export function databasePaths({ records }: DataDirectories): DatabasePaths {
  const path = join(records, "galatea.db");
  return { records: path, metrics: join(records, "metrics.db"), recordsMoved: `${path}.moved` };
}

/** The directory of frameworks that root installs for all users. `$GALATEA_FRAMEWORKS` replaces it. */
const frameworksOfRoot = "/var/lib/galatea/frameworks";

/**
 * Returns the directory in which `galatea model add` installs frameworks if no data directory is given. All platforms
 * and servers of the machine search it, whatever their data directory is.
 */
export function machineFrameworks(env: Readonly<Record<string, string | undefined>>): string {
  const named = env["GALATEA_FRAMEWORKS"] ?? "";
  if (named !== "") return resolve(named);
  return process.getuid?.() === 0 ? frameworksOfRoot : join(usersDirectory(env), "frameworks");
}

/** Returns the default data directory of this user. */
export function usersDirectory({ XDG_DATA_HOME: shared }: Readonly<Record<string, string | undefined>>): string {
  // An empty or relative path is ignored, as the XDG specification requires.
  const base = shared !== undefined && isAbsolute(shared) ? shared : join(homedir(), ".local", "share");
  return join(base, "galatea");
}

/**
 * Returns the paths in `input`, else in `$GALATEA_DATA`, else in `$XDG_DATA_HOME/galatea`, else in
 * `~/.local/share/galatea`. Relative paths are resolved against the working directory.
 */
export function dataDirectories(
  input: string | null,
  env: Readonly<Record<string, string | undefined>>,
): DataDirectories {
  const root = resolve(input ?? (env["GALATEA_DATA"] || usersDirectory(env)));
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
