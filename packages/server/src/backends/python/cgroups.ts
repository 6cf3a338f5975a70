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

const desired = ["memory", "pids"] as const;

/**
 * Returns the files that set the limits of a group, for the given cgroup version. A missing file is an error unless it is marked as
 * optional.
 */
function settings(
  location: CgroupLocation,
  limits: GroupLimits,
): readonly { file: string; value: string; optional?: true }[] {
  const memory = limits.memoryBytesMax;
  const rows: { file: string; value: string; optional?: true }[] = [];
  if (location.controllers.includes("pids") && limits.processesMax !== null)
    rows.push({ file: "pids.max", value: String(limits.processesMax) });
  if (!location.controllers.includes("memory") || memory === null) return rows;
  if (location.version === 1) {
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
  const locations: CgroupLocation[] = [];
  for (const line of mountinfo.split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , root = "", mountPoint = ""] = before.split(" ");
    const [type, , options = ""] = after.split(" ");
    const version = type === "cgroup" ? 1 : type === "cgroup2" ? 2 : null;
    if (version === null) continue;
    const controllers = version === 1 ? desired.filter((name) => options.split(",").includes(name)) : desired;
    const path = own.get(version === 1 ? (controllers[0] ?? "-") : "");
    if (controllers.length === 0 || path === undefined) continue;
    // A container may see only its own subtree of the hierarchy.
    const below = root === "/" ? path : path.startsWith(root) ? path.slice(root.length) : "";
    locations.push({ version, controllers, directory: join(mountPoint, below) });
  }
  return locations;
}

/** Creates control groups inside the control groups of this process. Synchronous, because each call only writes to the kernel. */
export class Cgroups {
  readonly #locations: readonly CgroupLocation[];
  readonly #name: string;
  #count = 0;

  private constructor(locations: readonly CgroupLocation[], name: string) {
    this.#locations = locations;
    this.#name = name;
  }

  /** Opens the control groups of this server. Their names begin with `name`. `missing` describes the limits that are not available. */
  static open(name: string, limits: GroupLimits): { readonly groups: Cgroups | null; readonly missing: string | null } {
    let locations: readonly CgroupLocation[];
    try {
      locations = findCgroups(readFileSync("/proc/self/cgroup", "utf8"), readFileSync("/proc/self/mountinfo", "utf8"));
    } catch (error) {
      return { groups: null, missing: `there are no control groups: ${(error as Error).message}` };
    }
    const usable: CgroupLocation[] = [];
    let reason: string | null = null;
    for (const location of locations) {
      try {
        const handed = withControllers(location);
        new Cgroups([handed], name).make(limits)[Symbol.dispose]();
        usable.push(handed);
      } catch (error) {
        reason ??= `control groups cannot be made in ${location.directory}: ${(error as Error).message}`;
      }
    }
    const found = new Set(usable.flatMap((location) => location.controllers));
    if (desired.some((controller) => !found.has(controller)))
      return { groups: null, missing: reason ?? "no hierarchy has the controllers memory and pids" };
    return { groups: new Cgroups(usable, name), missing: null };
  }

  /** Creates a group with these limits in each hierarchy. Disposing the result removes the groups; no process may be in them then. */
  make(limits: GroupLimits): CgroupSet {
    const name = `${this.#name}-${(this.#count += 1)}`;
    const created: string[] = [];
    try {
      for (const location of this.#locations) {
        const rows = settings(location, limits);
        if (rows.length === 0) continue;
        const directory = join(location.directory, name);
        mkdirSync(directory);
        created.push(directory);
        for (const { file, value, optional } of rows) {
          try {
            writeFileSync(join(directory, file), value);
          } catch (error) {
            if (optional === undefined) throw error;
          }
        }
      }
    } catch (error) {
      for (const directory of created) rmdirSync(directory);
      throw error;
    }
    return new CgroupSet(created);
  }

  /** Removes the groups of servers that have ended. `isGone` returns whether a name belongs to such a group. */
  sweep(isGone: (name: string) => boolean): void {
    for (const { directory } of this.#locations) {
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
function withControllers(location: CgroupLocation): CgroupLocation {
  if (location.version === 1) return location;
  const there = readFileSync(join(location.directory, "cgroup.controllers"), "utf8").trim().split(" ");
  const controllers = desired.filter((name) => there.includes(name));
  if (controllers.length === 0) throw new Error("it has neither memory nor pids");
  const handed = readFileSync(join(location.directory, "cgroup.subtree_control"), "utf8").trim().split(" ");
  const missing = controllers.filter((name) => !handed.includes(name));
  if (missing.length > 0)
    writeFileSync(join(location.directory, "cgroup.subtree_control"), missing.map((name) => `+${name}`).join(" "));
  return { ...location, controllers };
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
