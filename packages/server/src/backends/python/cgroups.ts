import { mkdirSync, readFileSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface GroupLimits {
  readonly memoryBytesMax: number | null;
  readonly processesMax: number | null;
}

/** A control group of this process in which child groups can be created, for one or more controllers. */
export interface CgroupLocation {
  readonly version: 1 | 2;
  readonly controllers: readonly string[];
  readonly directory: string;
}

const wanted = ["memory", "pids"] as const;

/**
 * Returns the files that set the limits of a group, for the given cgroup version. A missing file is an error unless it is marked as
 * optional.
 */
function settings(
  place: CgroupLocation,
  limits: GroupLimits,
): readonly { file: string; value: string; optional?: true }[] {
  const memory = limits.memoryBytesMax;
  const rows: { file: string; value: string; optional?: true }[] = [];
  if (place.controllers.includes("pids") && limits.processesMax !== null)
    rows.push({ file: "pids.max", value: String(limits.processesMax) });
  if (!place.controllers.includes("memory") || memory === null) return rows;
  if (place.version === 1) {
    rows.push({ file: "memory.limit_in_bytes", value: String(memory) });
    rows.push({ file: "memory.memsw.limit_in_bytes", value: String(memory), optional: true });
  } else {
    rows.push({ file: "memory.max", value: String(memory) });
    rows.push({ file: "memory.swap.max", value: "0", optional: true });
    rows.push({ file: "memory.oom.group", value: "1", optional: true });
  }
  return rows;
}

/**
 * Returns this process's control groups for the memory and pids controllers, from the contents of `/proc/self/cgroup` and
 * `/proc/self/mountinfo`. A controller without a hierarchy is omitted.
 */
export function findCgroups(cgroup: string, mountinfo: string): readonly CgroupLocation[] {
  const own = new Map<string, string>();
  for (const line of cgroup.split("\n")) {
    const [, names, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (names !== undefined && path !== undefined) for (const name of names.split(",")) own.set(name, path);
  }
  const places: CgroupLocation[] = [];
  for (const line of mountinfo.split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , root = "", mountPoint = ""] = before.split(" ");
    const [type, , options = ""] = after.split(" ");
    const version = type === "cgroup" ? 1 : type === "cgroup2" ? 2 : null;
    if (version === null) continue;
    const controllers = version === 1 ? wanted.filter((name) => options.split(",").includes(name)) : wanted;
    const path = own.get(version === 1 ? (controllers[0] ?? "-") : "");
    if (controllers.length === 0 || path === undefined) continue;
    // A container may see only its own subtree of the hierarchy.
    const below = root === "/" ? path : path.startsWith(root) ? path.slice(root.length) : "";
    places.push({ version, controllers, directory: join(mountPoint, below) });
  }
  return places;
}

/** Creates control groups inside the control groups of this process. Synchronous, because each call only writes to the kernel. */
export class Cgroups {
  readonly #places: readonly CgroupLocation[];
  readonly #name: string;
  #count = 0;

  private constructor(places: readonly CgroupLocation[], name: string) {
    this.#places = places;
    this.#name = name;
  }

  /** Opens the control groups of this server. Their names begin with `name`. `missing` describes the limits that are not available. */
  static open(name: string, limits: GroupLimits): { readonly groups: Cgroups | null; readonly missing: string | null } {
    let places: readonly CgroupLocation[];
    try {
      places = findCgroups(readFileSync("/proc/self/cgroup", "utf8"), readFileSync("/proc/self/mountinfo", "utf8"));
    } catch (error) {
      return { groups: null, missing: `there are no control groups: ${(error as Error).message}` };
    }
    const usable: CgroupLocation[] = [];
    let reason: string | null = null;
    for (const place of places) {
      try {
        const handed = withControllers(place);
        new Cgroups([handed], name).make(limits)[Symbol.dispose]();
        usable.push(handed);
      } catch (error) {
        reason ??= `control groups cannot be made in ${place.directory}: ${(error as Error).message}`;
      }
    }
    const found = new Set(usable.flatMap((place) => place.controllers));
    if (wanted.some((controller) => !found.has(controller)))
      return { groups: null, missing: reason ?? "no hierarchy has the controllers memory and pids" };
    return { groups: new Cgroups(usable, name), missing: null };
  }

  /** Creates a group with these limits in each hierarchy. Disposing the result removes the groups; no process may be in them then. */
  make(limits: GroupLimits): CgroupSet {
    const name = `${this.#name}-${(this.#count += 1)}`;
    const made: string[] = [];
    try {
      for (const place of this.#places) {
        const rows = settings(place, limits);
        if (rows.length === 0) continue;
        const directory = join(place.directory, name);
        mkdirSync(directory);
        made.push(directory);
        for (const { file, value, optional } of rows) {
          try {
            writeFileSync(join(directory, file), value);
          } catch (error) {
            if (optional === undefined) throw error;
          }
        }
      }
    } catch (error) {
      for (const directory of made) rmdirSync(directory);
      throw error;
    }
    return new CgroupSet(made);
  }

  /** Removes the groups of servers that have ended. `isGone` returns whether a name belongs to such a group. */
  sweep(isGone: (name: string) => boolean): void {
    for (const { directory } of this.#places) {
      for (const entry of readdirSync(directory)) {
        const owner = /^(.*)-\d+$/.exec(entry)?.[1];
        if (owner !== undefined && isGone(owner)) removeEmpty(join(directory, entry));
      }
    }
  }
}

export class CgroupSet implements Disposable {
  readonly #directories: readonly string[];

  constructor(directories: readonly string[]) {
    this.#directories = directories;
  }

  get processFiles(): readonly string[] {
    return this.#directories.map((directory) => join(directory, "cgroup.procs"));
  }

  [Symbol.dispose](): void {
    for (const directory of this.#directories) removeEmpty(directory);
  }
}

/** Enables the controllers for child groups, which cgroup version 2 requires. */
function withControllers(place: CgroupLocation): CgroupLocation {
  if (place.version === 1) return place;
  const there = readFileSync(join(place.directory, "cgroup.controllers"), "utf8").trim().split(" ");
  const controllers = wanted.filter((name) => there.includes(name));
  if (controllers.length === 0) throw new Error("it has neither memory nor pids");
  const handed = readFileSync(join(place.directory, "cgroup.subtree_control"), "utf8").trim().split(" ");
  const missing = controllers.filter((name) => !handed.includes(name));
  if (missing.length > 0)
    writeFileSync(join(place.directory, "cgroup.subtree_control"), missing.map((name) => `+${name}`).join(" "));
  return { ...place, controllers };
}

/** Removes a group. A group that still contains a process remains until the next sweep. */
function removeEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EBUSY" && code !== "ENOENT") throw error;
  }
}
