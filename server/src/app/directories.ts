import { homedir } from "node:os";
import { join } from "node:path";

/** Where things live below the data directory; one list. */
export interface DataDirectories {
  readonly root: string;
  readonly python: string;
  readonly cache: string;
  readonly objects: string;
  readonly records: string;
  readonly logs: string;
  readonly instances: string;
  readonly clients: string;
}

/** `given` or `$XDG_DATA_HOME/galatea` or `~/.local/share/galatea`. */
export function dataDirectories(
  given: string | null,
  env: Readonly<Record<string, string | undefined>>,
): DataDirectories {
  const base = env.XDG_DATA_HOME ?? join(homedir(), ".local", "share");
  const root = given ?? env.GALATEA_DATA ?? join(base, "galatea");
  return {
    root,
    python: join(root, "python"),
    cache: join(root, "cache"),
    objects: join(root, "objects"),
    records: join(root, "records"),
    logs: join(root, "logs"),
    instances: join(root, "instances"),
    clients: join(root, "clients"),
  };
}
