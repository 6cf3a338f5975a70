import { readFile } from "node:fs/promises";
import { pageBytes } from "@galatea/base/system";

/** Smaller movements are not worth a walk over all pages. */
const noticedBytes = 2 ** 20;

/**
 * Anonymous memory of this process: what it would give back if it ended. The arenas that it maps are files' memory and the tenants', and
 * are not counted here.
 */
export class RunnerMemory {
  #roughBytes = 0;
  #bytes = 0;

  /** Exact to what is noticed. Cheap while nothing changes: the counters, which the kernel keeps for each processor, are read first. */
  async bytes(): Promise<number> {
    const roughBytes = await countedBytes();
    if (Math.abs(roughBytes - this.#roughBytes) >= noticedBytes) {
      this.#bytes = await walkedBytes();
      this.#roughBytes = roughBytes;
    }
    return this.#bytes;
  }
}

async function countedBytes(): Promise<number> {
  const [, resident = 0, shared = 0] = (await readFile("/proc/self/statm", "latin1")).split(" ").map(Number);
  return (resident - shared) * pageBytes;
}

async function walkedBytes(): Promise<number> {
  const [, kibibytes] = /^Anonymous:\s+(\d+) kB$/m.exec(await readFile("/proc/self/smaps_rollup", "latin1")) ?? [];
  if (kibibytes === undefined) throw new Error("smaps_rollup does not say how much of this process is anonymous");
  return Number(kibibytes) * 1024;
}
