import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

/** Where things live below the data directory; one list. */
export interface DataDirectories {
  readonly root: string;
  readonly python: string;
  /** What `galatea model add` makes. */
  readonly frameworks: string;
  readonly cache: string;
  readonly objects: string;
  readonly records: string;
  readonly logs: string;
  readonly instances: string;
  readonly clients: string;
}

/** The file of the platform's own key, made by whoever needs it first. */
export function credentialsPath({ root }: DataDirectories): string {
  return join(root, "credentials");
}

/** `given`, else `$GALATEA_DATA`, else `$XDG_DATA_HOME/galatea`, else `~/.local/share/galatea`. What is relative begins where we are. */
export function dataDirectories(
  given: string | null,
  env: Readonly<Record<string, string | undefined>>,
): DataDirectories {
  const { GALATEA_DATA: ours, XDG_DATA_HOME: shared } = env;
  // The XDG specification: a path that is empty or relative is ignored.
  const base = shared !== undefined && isAbsolute(shared) ? shared : join(homedir(), ".local", "share");
  const root = resolve(given ?? (ours || join(base, "galatea")));
  return {
    root,
    python: join(root, "python"),
    frameworks: join(root, "frameworks"),
    cache: join(root, "cache"),
    objects: join(root, "objects"),
    records: join(root, "records"),
    logs: join(root, "logs"),
    instances: join(root, "instances"),
    clients: join(root, "clients"),
  };
}
