import { dirname } from "node:path";

/** What the operator allows the workers of tenants, and where what they need is kept. */
export interface TenantOptions {
  /** Users that are nobody else's on this machine; each tenant gets one of them. Null: none is given. */
  readonly users: UserRange | null;
  /** Read by every tenant, beside the system, Python and its own models. */
  readonly readPaths: readonly string[];
  /** Written by every tenant, beside its own scratch directory. */
  readonly writePaths: readonly string[];
  /** Found by every tenant where it has a root directory of its own, or can have the machine's with paths added. */
  readonly fixedPaths: readonly FixedPath[];
  /**
   * Devices of the machine's GPUs, as they are now: those of models that run on GPUs, and of no others. All of them, because CUDA numbers
   * what it can open from 0 on, and a model is told the number that its GPU has for the server.
   */
  readonly gpuDevices: () => readonly string[];
  /** TCP ports that may be connected to; null allows all, and listening too. */
  readonly tcpPorts: readonly number[] | null;
  /**
   * Each worker has a listener of this machine's own at a TCP port, to which of all tenants it alone may connect: what it runs may speak
   * HTTP with itself. Not where no port may be connected to: a port is known to Landlock without its host.
   */
  readonly opensPort: boolean;
  /** Of one tenant; null: a tenant is bounded with all the others. */
  readonly memoryBytesMax: number | null;
  /** Of all tenants and the interpreters that they share. */
  readonly allMemoryBytesMax: number | null;
  /** Processes and threads of one tenant. */
  readonly processesMax: number;
  readonly scratchBytesMax: number;
  /** This process's own, to be made: what is below it ends with the backend. */
  readonly directory: string;
  /** The data directory, which is closed to other users and which tenants' users pass through. Null where tenants read nothing in a closed directory. */
  readonly dataDirectory: string | null;
  /** Shared by all servers over one data directory: here they divide the users among themselves. */
  readonly slicesDirectory: string;
}

/** A path that leads each tenant to what is its own, wherever that lies on this machine: its model's directory, or the one around it. */
export interface FixedPath {
  readonly path: string;
  readonly leadsTo: "model" | "around-model" | { readonly directory: string };
}

export interface UserRange {
  readonly first: number;
  readonly count: number;
}

/** What a zygote found out about this machine: `facts` in `galatea_worker/tenant.py`. */
export interface MachineFacts {
  /** The ABI of Landlock; 0: there is none. */
  readonly landlock: number;
  /** Root, with what it takes to become another user. */
  readonly isRoot: boolean;
  readonly usersMapped: boolean;
  /** Whether a tenant can have a root directory of its own. */
  readonly views: boolean;
  /** Whether, without one, it can have the machine's with paths added. */
  readonly ownPaths: boolean;
  /** What has to be readable for Python to run. */
  readonly environmentPaths: readonly string[];
}

/** What is one tenant's while any of its processes lives. */
export interface TenantParts {
  readonly user: number | null;
  /** `cgroup.procs` of groups of its own. */
  readonly cgroups: readonly string[];
  /** Whether a control group bounds its memory, its own or that of all tenants. */
  readonly isMemoryBounded: boolean;
  /** Where it writes, outside of views. */
  readonly scratchDirectory: string | null;
  readonly readPaths: readonly string[];
  /** Of its first model, which a root directory of its own was made for. */
  readonly modelDirectory: string;
}

/** What a tenant's process applies to itself before it runs code of the tenant: read by `galatea_worker/tenant.py`. */
export interface ConfinementPlan {
  readonly user: number | null;
  /** Beside the user's own: the group that may pass through the data directory, where there is no view. */
  readonly groups: readonly number[];
  readonly dropsCapabilities: boolean;
  readonly landlock: number;
  /** The empty directory that the root is made over; null: the machine's files, as far as the rules allow. */
  readonly view: string | null;
  readonly scratch: string;
  readonly scratchBytes: number;
  readonly read: readonly string[];
  readonly write: readonly string[];
  /** Devices beside those that every program has. */
  readonly devices: readonly string[];
  /** The empty directory over which the machine's root is made anew with `links`, where there is no view; null: without them. */
  readonly linksRoot: string | null;
  /** In a root of its own: a path and where it leads. Where something lies there already that stays. */
  readonly links: readonly (readonly [path: string, target: string])[];
  readonly tcp: readonly number[] | null;
  readonly opensPort: boolean;
  readonly cgroups: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
}

/** What a view calls its scratch directory. */
const viewScratch = "/tmp";

/** RLIMIT_CORE 1: none is written to a file, and none is piped to a program, which 0 would allow. */
const coreBytesMax = 1;

export function planFor(
  options: TenantOptions,
  facts: MachineFacts,
  root: string,
  parts: TenantParts,
): ConfinementPlan {
  const { user, cgroups, scratchDirectory } = parts;
  const memoryBytesMax = options.memoryBytesMax ?? options.allMemoryBytesMax;
  // POSIX shared memory lies here where there is no view. Without a user of its own, a tenant would find the others' there.
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
      // Counted by user: without one of its own, a tenant would share the count with everybody.
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

/** One line of what keeps tenants apart: `missing` is null where it is applied. */
export interface ConfinementRow {
  readonly what: "users" | "files" | "view" | "network" | "signals" | "memory" | "processes" | "disk";
  readonly missing: string | null;
}

export interface ReportParts {
  /** Why tenants get no users of their own; null where they do. */
  readonly usersMissing: string | null;
  readonly cgroupsMissing: string | null;
}

/** What is applied on this machine, and what is not and why. */
export function confinementRows(
  options: TenantOptions,
  facts: MachineFacts,
  { usersMissing, cgroupsMissing }: ReportParts,
): readonly ConfinementRow[] {
  const kernel = (since: number, what: string) =>
    facts.landlock >= since ? null : `this kernel's Landlock (${facts.landlock || "none"}) does not ${what}`;
  const noRoot = facts.views ? null : "it takes root with CAP_SYS_ADMIN to give tenants root directories of their own";
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
