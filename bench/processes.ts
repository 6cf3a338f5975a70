import { readdir, readFile } from "node:fs/promises";

export interface TreeMemory {
  readonly processCount: number;
  /** Bytes of pages that belong to one process only. */
  readonly privateBytes: number;
  /** Shared pages divided among those that share them. */
  readonly proportionalBytes: number;
}

/** Memory of a server and everything that it started: all processes of its session, and descendants that left it. */
export async function treeMemory(pid: number): Promise<TreeMemory> {
  const pids = await processTree(pid);
  let privateBytes = 0;
  let proportionalBytes = 0;
  for (const member of pids) {
    const rollup = await readFile(`/proc/${member}/smaps_rollup`, "utf8").catch(ignoreEnded);
    if (rollup === undefined) continue;
    const field = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB`, "m").exec(rollup)?.[1] ?? 0) * 1024;
    privateBytes += field("Private_Clean") + field("Private_Dirty");
    proportionalBytes += field("Pss");
  }
  return { processCount: pids.length, privateBytes, proportionalBytes };
}

/** Microseconds of a clock tick, the unit of CPU times in /proc. */
const tickUs = 10_000;

/** CPU time of the same processes, and of their children that have ended. */
export async function treeCpuUs(pid: number): Promise<number> {
  let us = 0;
  for (const member of await processTree(pid)) us += await cpuUs(member, [11, 12, 13, 14]);
  return us;
}

/** CPU time of one process with all of its threads; 0 if it has ended. */
export function processCpuUs(pid: number): Promise<number> {
  return cpuUs(pid, [11, 12]);
}

/** Adds fields of /proc/PID/stat, counted from the process's state. */
async function cpuUs(pid: number, positions: readonly number[]): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(ignoreEnded);
  if (stat === undefined) return 0;
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return positions.reduce((ticks, position) => ticks + Number(fields[position]), 0) * tickUs;
}

async function processTree(root: number): Promise<number[]> {
  const rows: { pid: number; parent: number; session: number }[] = [];
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await readFile(`/proc/${name}/stat`, "utf8").catch(ignoreEnded);
    if (stat === undefined) continue;
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    rows.push({ pid: Number(name), parent: Number(fields[1]), session: Number(fields[3]) });
  }
  const members = new Set(rows.filter((row) => row.pid === root || row.session === root).map((row) => row.pid));
  for (let before = -1; before !== members.size;) {
    before = members.size;
    for (const row of rows) if (members.has(row.parent)) members.add(row.pid);
  }
  return [...members];
}

function ignoreEnded(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT" && error.code !== "ESRCH") throw error;
}
