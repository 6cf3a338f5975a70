import { dirname } from "node:path";

/** The operator's settings for confining workers by tenant, and the directories that confinement uses. */
export interface TenantOptions {
  /**
   * Unix user ids that only this server uses on this machine; each tenant runs under its own id. Null: tenants run as the server's user.
   */
  readonly users: UserRange | null;
  /** Paths that every tenant may read, in addition to the system, Python and its own models. */
  readonly readPaths: readonly string[];
  /** Paths that every tenant may write, in addition to its own scratch directory. */
  readonly writePaths: readonly string[];
  /** Paths at which every tenant finds its own files; requires a separate root directory for each tenant. */
  readonly fixedPaths: readonly FixedPath[];
  /**
   * Returns the device files of the machine's GPUs. Only models with GPU instances get access, and they get access to all of these files.
   * The reason is that CUDA numbers only the devices that it can open, and a GPU must have the same number as in the server.
   */
  readonly gpuDevices: () => readonly string[];
  /** TCP ports to which tenants may connect; they may not listen then. Null allows both without restriction. */
  readonly tcpPorts: readonly number[] | null;
  /**
   * True if each worker gets a local TCP listener that no other tenant can connect to, so that its code can make HTTP requests to itself.
   * Cannot be combined with an empty `tcpPorts`, because Landlock restricts ports regardless of the host.
   */
  readonly opensPort: boolean;
  /** Memory limit of each tenant in bytes. Null: only the limit of all tenants together applies. */
  readonly memoryBytesMax: number | null;
  /** Memory limit in bytes of all tenants together, including the interpreters that they share. */
  readonly allMemoryBytesMax: number | null;
  /** Maximum number of processes and threads of each tenant. */
  readonly processesMax: number;
  readonly scratchBytesMax: number;
  /** Directory for this process's temporary files; created when needed, removed with the backend. */
  readonly directory: string;
  /**
   * The data directory. Other users cannot enter it, so each tenant's user gets permission to traverse it. Null if no tenant reads files in
   * it.
   */
  readonly dataDirectory: string | null;
  /** Directory in which all servers with the same data directory record which user ids they use. */
  readonly slicesDirectory: string;
}

/**
 * A path at which each tenant finds its own files, regardless of their location on the machine: its model's directory, or the parent of
 * that.
 */
export interface FixedPath {
  readonly path: string;
  readonly leadsTo: "model" | "around-model" | { readonly directory: string };
}

export interface UserRange {
  readonly first: number;
  readonly count: number;
}

/** Properties of this machine, as a zygote has determined it: `facts` in `galatea_worker/tenant.py`. */
export interface MachineFacts {
  /** ABI version of Landlock; 0: not available. */
  readonly landlock: number;
  /** True if the server is root and has the capabilities to change to another user. */
  readonly isRoot: boolean;
  readonly usersMapped: boolean;
  /** True if each tenant can have a separate root directory. */
  readonly views: boolean;
  /** True if each tenant can have the machine's root directory with links added to it. */
  readonly ownPaths: boolean;
  /** Paths that the Python interpreter must be able to read. */
  readonly environmentPaths: readonly string[];
}

/** The resources of a tenant while one of its processes runs. */
export interface TenantResources {
  readonly user: number | null;
  /** Paths of the `cgroup.procs` files of the tenant's control groups. */
  readonly cgroups: readonly string[];
  /** True if a control group limits the tenant's memory, alone or together with other tenants. */
  readonly isMemoryBounded: boolean;
  /** The tenant's writable directory; null if the tenant has a separate root directory. */
  readonly scratchDirectory: string | null;
  readonly readPaths: readonly string[];
  /** Directory of the tenant's first model, for which the separate root directory was created. */
  readonly modelDirectory: string;
}

/** The confinement that a worker applies to itself before it runs the tenant's code; read by `galatea_worker/tenant.py`. */
export interface ConfinementPlan {
  readonly user: number | null;
  /** Supplementary groups: the group that may traverse the data directory, if there is no separate root directory. */
  readonly groups: readonly number[];
  readonly dropsCapabilities: boolean;
  readonly landlock: number;
  /**
   * An empty directory on which the separate root is mounted. Null: the tenant sees the machine's root directory, and the rules restrict
   * access.
   */
  readonly view: string | null;
  readonly scratch: string;
  readonly scratchBytes: number;
  readonly read: readonly string[];
  readonly write: readonly string[];
  /** Device files in addition to the usual ones (/dev/null and others). */
  readonly devices: readonly string[];
  /**
   * An empty directory on which the machine's root is mounted with `links` added, if there is no separate root directory. Null: no links
   * are added.
   */
  readonly linksRoot: string | null;
  /** Symbolic links to create in the root directory. An existing path is not replaced. */
  readonly links: readonly (readonly [path: string, target: string])[];
  readonly tcp: readonly number[] | null;
  readonly opensPort: boolean;
  readonly cgroups: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
}

/** Path of the scratch directory inside a separate root directory. */
const viewScratch = "/tmp";

/** RLIMIT_CORE 1 prevents core dumps. With 0, the kernel would still pipe a core to a crash handler program. */
const coreBytesMax = 1;

export function createConfinementPlan(
  options: TenantOptions,
  facts: MachineFacts,
  root: string,
  parts: TenantResources,
): ConfinementPlan {
  const { user, cgroups, scratchDirectory } = parts;
  const memoryBytesMax = options.memoryBytesMax ?? options.allMemoryBytesMax;
  // Without a separate root directory, tenants share /dev/shm. Only a tenant with its own user gets access, because a shared user could
  // open the files of other tenants.
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
      // The kernel counts processes by user. A tenant without its own user would share the count with all others.
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

/** A measure that isolates tenants. `missing` is the reason why the measure is not applied; null if it is applied. */
export interface ConfinementRow {
  readonly what: "users" | "files" | "view" | "network" | "signals" | "memory" | "processes" | "disk";
  readonly missing: string | null;
}

export interface ReportFacts {
  /** The reason why tenants do not have users of their own; null if they do. */
  readonly usersMissing: string | null;
  readonly cgroupsMissing: string | null;
}

/** Returns all isolation measures, each with the reason if it is not applied on this machine. */
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
    { what: "files", missing: kernel(3, "restrict all accesses to files") },
    { what: "view", missing: noRoot },
    { what: "network", missing: options.tcpPorts === null ? null : kernel(4, "restrict TCP") },
    { what: "signals", missing: kernel(6, "restrict signals and abstract sockets") },
    { what: "memory", missing: memory ?? (cgroupsMissing === null ? null : `by process only: ${cgroupsMissing}`) },
    { what: "processes", missing: usersMissing === null ? null : cgroupsMissing },
    { what: "disk", missing: noRoot === null ? null : `by file only: ${noRoot}` },
  ];
}
