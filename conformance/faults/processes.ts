import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";

/** A process as /proc describes it. */
export interface SeenProcess {
  readonly pid: number;
  readonly parentPid: number;
  /** R, S, D, Z, ... */
  readonly state: string;
  readonly command: string;
}

/** Returns all living processes whose environment contains `mark`. Children inherit it, so orphans are found too. */
export function processesMarked(mark: string): SeenProcess[] {
  const found: SeenProcess[] = [];
  for (const pid of pids()) {
    const environment = readProc(pid, "environ");
    if (environment === null || !environment.includes(mark)) continue;
    const seen = see(pid);
    if (seen !== null && seen.state !== "Z") found.push(seen);
  }
  return found;
}

/** Returns all living processes below `ancestor`, including zombies, which their parent has not waited for. */
export function descendantsOf(ancestor: number): SeenProcess[] {
  const all = pids().flatMap((pid) => see(pid) ?? []);
  const family = new Set([ancestor]);
  const below: SeenProcess[] = [];
  // Parents may follow their children in the list, so the scan repeats until no process is added.
  for (let grown = true; grown;) {
    grown = false;
    for (const one of all) {
      if (family.has(one.pid) || !family.has(one.parentPid)) continue;
      family.add(one.pid);
      below.push(one);
      grown = true;
    }
  }
  return below;
}

/** Names in /dev/shm that a process has open or mapped. */
export function sharedMemoryNames(pid: number): string[] {
  const maps = readProc(pid, "maps") ?? "";
  const mapped = [...maps.matchAll(/\/dev\/shm\/\S+/g)].map(([name]) => name);
  return [...new Set([...mapped, ...openFiles(pid).filter((path) => path.startsWith("/dev/shm/"))])];
}

/** Returns the targets of the process's descriptors. */
export function openFiles(pid: number): string[] {
  return namesIn(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${name}`)];
    } catch (error) {
      return ignoreEnded(error, []);
    }
  });
}

/** Returns resident bytes; 0 when the process has ended. */
export function residentBytes(pid: number): number {
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readProc(pid, "status") ?? "")?.[1];
  return Number(kibibytes ?? 0) * 1024;
}

function pids(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function see(pid: number): SeenProcess | null {
  const stat = readProc(pid, "stat");
  if (stat === null) return null;
  const [state = "", parentPid = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const command = (readProc(pid, "cmdline") ?? "").replaceAll("\0", " ").trim();
  return { pid, parentPid: Number(parentPid), state, command };
}

function readProc(pid: number, name: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "latin1");
  } catch (error) {
    return ignoreEnded(error, null);
  }
}

/** Processes may end during the scan, and processes of other users may not be readable. */
function ignoreEnded<Value>(error: unknown, value: Value): Value {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" || code === "ESRCH" || code === "EACCES" || code === "EPERM") return value;
  throw error;
}

/** Returns the allocated bytes in the memory files of a process: tensors in flight. Punched holes do not count. */
export function arenaBytes(pid: number): number {
  const inodes = new Map<number, number>();
  for (const name of namesIn(`/proc/${pid}/fd`)) {
    const path = `/proc/${pid}/fd/${name}`;
    try {
      if (!readlinkSync(path).startsWith("/memfd:")) continue;
      const { ino, blocks } = statSync(path);
      inodes.set(ino, blocks * 512);
    } catch (error) {
      ignoreEnded(error, null);
    }
  }
  return [...inodes.values()].reduce((sum, bytes) => sum + bytes, 0);
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    return ignoreEnded(error, []);
  }
}
