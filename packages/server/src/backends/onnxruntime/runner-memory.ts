import { readFile } from "node:fs/promises";
import { pageBytes } from "@galatea/base/system";

/** Change in bytes after which the exact measurement is repeated. It is expensive, because it walks all pages of the process. */
const noticedBytes = 2 ** 20;

/**
 * Measures the anonymous memory of this process, which is freed when the process ends. Mapped arenas are not counted: they are file memory,
 * which is charged to tenants.
 */
export class RunnerMemory {
  #roughBytes = 0;
  #bytes = 0;

  /**
   * Returns the anonymous memory in bytes, exact to `noticedBytes`. The kernel's approximate counters are read first. The call is cheap if
   * they have hardly changed.
   */
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
