import { dirname } from "node:path";

/** The operator's settings for the workers of tenants, and the location of their directories. */
export interface TenantOptions {
  /** Users that only this server uses on this machine; each tenant gets one of them. Null: tenants share the server's user. */
  readonly users: UserRange | null;
  /** Paths that every tenant may read, in addition to the system, Python and its own models. */
  readonly readPaths: readonly string[];
  /** Paths that every tenant may write, in addition to its own scratch directory. */
  readonly writePaths: readonly string[];
  /** Paths that every tenant finds, if it has its own root directory or the machine's with added paths. */
  readonly fixedPaths: readonly FixedPath[];
  /**
   * Returns the device files of the machine's GPUs, for models that run on GPUs and no others. All of them, because CUDA numbers the
   * devices that it can open from 0 on, and a model gets the number that its GPU has in the server.
   */
  readonly gpuDevices: () => readonly string[];
  /** TCP ports to which tenants may connect; null allows all, and listening too. */
  readonly tcpPorts: readonly number[] | null;
  /**
   * True if each worker gets a local TCP listener to which it alone, of all tenants, may connect, so that its code may speak HTTP with
   * itself. Not together with an empty `tcpPorts`, because Landlock restricts ports regardless of the host.
   */
  readonly opensPort: boolean;
  /** Limit of one tenant; null: only the limit of all tenants together. */
  readonly memoryBytesMax: number | null;
  /** Limit of all tenants and the interpreters that they share. */
  readonly allMemoryBytesMax: number | null;
  /** Processes and threads of one tenant. */
  readonly processesMax: number;
  readonly scratchBytesMax: number;
  /** A directory of this process, created when needed; it is removed with the backend. */
  readonly directory: string;
  /**
   * The data directory, which is closed to other users and which tenants' users must traverse. Null when tenants read nothing in a closed
   * directory.
   */
  readonly dataDirectory: string | null;
  /** Directory shared by all servers with the same data directory, in which they divide the users among themselves. */
  readonly slicesDirectory: string;
}

/** A path at which each tenant finds its own data, whatever its location on this machine: its model's directory, or the parent. */
export interface FixedPath {
  readonly path: string;
  readonly leadsTo: "model" | "around-model" | { readonly directory: string };
}

export interface UserRange {
  readonly first: number;
  readonly count: number;
}

/** Capabilities of this machine as a zygote determined them: `facts` in `galatea_worker/tenant.py`. */
export interface MachineFacts {
  /** ABI version of Landlock; 0: not available. */
  readonly landlock: number;
  /** True for root with the capabilities to become another user. */
  readonly isRoot: boolean;
  readonly usersMapped: boolean;
  /** True if a tenant can have its own root directory. */
  readonly views: boolean;
  /** True if, without its own root directory, it can have the machine's with added paths. */
  readonly ownPaths: boolean;
  /** Paths that Python must be able to read. */
  readonly environmentPaths: readonly string[];
}

/** Resources of one tenant while any of its processes runs. */
export interface TenantResources {
  readonly user: number | null;
  /** `cgroup.procs` files of its own groups. */
  readonly cgroups: readonly string[];
  /** True if a control group limits its memory, its own or that of all tenants. */
  readonly isMemoryBounded: boolean;
  /** Its writable directory when it has no view. */
  readonly scratchDirectory: string | null;
  readonly readPaths: readonly string[];
  /** Directory of its first model, for which its own root directory was made. */
  readonly modelDirectory: string;
}

/** The confinement that a tenant's process applies to itself before it runs the tenant's code: read by `galatea_worker/tenant.py`. */
export interface ConfinementPlan {
  readonly user: number | null;
  /** Groups in addition to the user's own: the group that may traverse the data directory, when there is no view. */
  readonly groups: readonly number[];
  readonly dropsCapabilities: boolean;
  readonly landlock: number;
  /** The empty directory over which the root is built; null: the machine's files, as far as the rules allow. */
  readonly view: string | null;
  readonly scratch: string;
  readonly scratchBytes: number;
  readonly read: readonly string[];
  readonly write: readonly string[];
  /** Devices in addition to those of every program. */
  readonly devices: readonly string[];
  /** The empty directory over which the machine's root is rebuilt with `links`, when there is no view; null: without links. */
  readonly linksRoot: string | null;
  /** Links in its own root: a path and its target. An existing path is not replaced. */
  readonly links: readonly (readonly [path: string, target: string])[];
  readonly tcp: readonly number[] | null;
  readonly opensPort: boolean;
  readonly cgroups: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
}

/** Path of the scratch directory in a view. */
const viewScratch = "/tmp";

/** RLIMIT_CORE 1: no core is written to a file or piped to a program, which 0 would allow. */
const coreBytesMax = 1;

export function planFor(
  options: TenantOptions,
  facts: MachineFacts,
  root: string,
  parts: TenantResources,
): ConfinementPlan {
  const { user, cgroups, scratchDirectory } = parts;
  const memoryBytesMax = options.memoryBytesMax ?? options.allMemoryBytesMax;
  // Directory of POSIX shared memory when there is no view. Without its own user, a tenant would have access to that of others.
  const sharedMemory = !facts.views && user !== null ? ["/dev/shm"] : [];
  return {
    user,
    groups: facts.views || user === null || options.users === null ? [] : [options.users.first],
    dropsCapabilities: facts.isRoot,
    landlock: facts.landlock,
    view: facts.views ? root : null,
    scratch: scratchDirectory ?? viewScratch,
    scratchBytes: options.scratchBytesMax,
    read: [...new Set([...parts.readPaths, ...options.readPaths])],
    write: [...options.writePaths, ...sharedMemory],
    devices: [],
    linksRoot: !facts.views && facts.ownPaths && options.fixedPaths.length > 0 ? root : null,
    links: options.fixedPaths.map(({ path, leadsTo }) => [path, targetOf(leadsTo, parts.modelDirectory)]),
    tcp: options.tcpPorts,
    opensPort: options.opensPort && options.tcpPorts?.length !== 0,
    cgroups,
    limits: {
      RLIMIT_CORE: coreBytesMax,
      // Counted by user: without its own user, a tenant would share the count with all others.
      ...(user === null ? {} : { RLIMIT_NPROC: options.processesMax }),
      ...(parts.isMemoryBounded || memoryBytesMax === null ? {} : { RLIMIT_DATA: memoryBytesMax }),
      ...(facts.views ? {} : { RLIMIT_FSIZE: options.scratchBytesMax }),
    },
  };
}

function targetOf(leadsTo: FixedPath["leadsTo"], modelDirectory: string): string {
  if (typeof leadsTo === "object") return leadsTo.directory;
  return leadsTo === "model" ? modelDirectory : dirname(modelDirectory);
}

/** One measure that isolates tenants: `missing` is null when it is applied, else the reason. */
export interface ConfinementRow {
  readonly what: "users" | "files" | "view" | "network" | "signals" | "memory" | "processes" | "disk";
  readonly missing: string | null;
}

export interface ReportFacts {
  /** The reason why tenants have no users of their own; null when they do. */
  readonly usersMissing: string | null;
  readonly cgroupsMissing: string | null;
}

/** Returns the measures that are applied on this machine, and for the others the reason. */
export function confinementRows(
  options: TenantOptions,
  facts: MachineFacts,
  { usersMissing, cgroupsMissing }: ReportFacts,
): readonly ConfinementRow[] {
  const kernel = (since: number, what: string) =>
    facts.landlock >= since ? null : `this kernel's Landlock (${facts.landlock || "none"}) does not ${what}`;
  const noRoot = facts.views ? null : "root with CAP_SYS_ADMIN is required to give each tenant its own root directory";
  const isMemoryAsked = options.memoryBytesMax !== null || options.allMemoryBytesMax !== null;
  const memory = isMemoryAsked ? null : "neither --worker-memory-bytes nor a memory budget is set";
  return [
    { what: "users", missing: usersMissing },
    { what: "files", missing: kernel(3, "hold all accesses to files") },
    { what: "view", missing: noRoot },
    { what: "network", missing: options.tcpPorts === null ? null : kernel(4, "hold TCP") },
    { what: "signals", missing: kernel(6, "hold signals and abstract sockets") },
    { what: "memory", missing: memory ?? (cgroupsMissing === null ? null : `by process only: ${cgroupsMissing}`) },
    { what: "processes", missing: usersMissing === null ? null : cgroupsMissing },
    { what: "disk", missing: noRoot === null ? null : `by file only: ${noRoot}` },
  ];
}
