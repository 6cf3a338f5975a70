import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";

/** A process as /proc tells it. */
export interface SeenProcess {
  readonly pid: number;
  readonly parentPid: number;
  /** R, S, D, Z, ... */
  readonly state: string;
  readonly command: string;
}

/** All living processes whose environment holds `mark`: it is inherited, so it names a whole family, orphans included. */
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

/** All living processes below `ancestor`, zombies included: a zombie is a process that nobody has waited for. */
export function descendantsOf(ancestor: number): SeenProcess[] {
  const all = pids().flatMap((pid) => see(pid) ?? []);
  const family = new Set([ancestor]);
  const below: SeenProcess[] = [];
  // Parents may come after their children in the list: look until nobody is added.
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

/** What the process's descriptors lead to. */
export function openFiles(pid: number): string[] {
  return namesIn(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${name}`)];
    } catch (error) {
      return ignoreEnded(error, []);
    }
  });
}

/** Resident bytes; 0 when the process has ended. */
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

/** Processes end while they are looked at; those of others may not be looked at. */
function ignoreEnded<Value>(error: unknown, value: Value): Value {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" || code === "ESRCH" || code === "EACCES" || code === "EPERM") return value;
  throw error;
}

/** Bytes that the memory files of a process hold: tensors in flight. Whatever was punched out counts no more. */
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
