import { readFile } from "node:fs/promises";
import { pageBytes } from "@galatea/base/system";

/** Smaller changes do not justify a walk over all pages. */
const noticedBytes = 2 ** 20;

/**
 * Measures the anonymous memory of this process, which its end would free. Mapped arenas are files' memory and charged to tenants; they
 * are not counted.
 */
export class RunnerMemory {
  #roughBytes = 0;
  #bytes = 0;

  /** Returns the anonymous memory, exact to `noticedBytes`. Cheap while nothing changes: the kernel's counters are read first. */
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
