import type { DeviceBytes } from "../device-bytes.ts";
import { MemoryLedger } from "./memory-ledger.ts";

/**
 * GPU memory of a runner process. The driver reports only the total of the process, which is divided among the sessions on each GPU. The
 * first session is also charged with the memory of the process itself (CUDA's context and libraries).
 */
export class GpuMemory {
  readonly #read: () => Promise<DeviceBytes>;
  readonly #ledgers = new Map<number, MemoryLedger>();

  /** `read` returns the GPU memory of the process; an empty map when the driver does not report it. */
  constructor(read: () => Promise<DeviceBytes>) {
    this.#read = read;
  }

  bytesOf(key: string): DeviceBytes {
    return new Map(
      [...this.#ledgers].flatMap(([device, ledger]) => {
        const bytes = ledger.bytesOf(key);
        return bytes === null ? [] : [[`gpu ${device}`, bytes] as const];
      }),
    );
  }

  /** Calls `open` to open a session, charges the session with the growth of the GPU memory, and returns the result of `open`. */
  async during<T>(key: string, device: number, open: () => Promise<T>): Promise<T> {
    const before = (await this.#read()).get(`gpu ${device}`) ?? 0;
    const opened = await open();
    const after = (await this.#read()).get(`gpu ${device}`) ?? 0;
    const ledger = this.#ledgers.get(device) ?? new MemoryLedger();
    this.#ledgers.set(device, ledger);
    ledger.opened(key, Math.max(0, after - before));
    ledger.measured(after);
    return opened;
  }

  closed(key: string): void {
    for (const ledger of this.#ledgers.values()) ledger.closed(key);
  }

  ran(key: string, durationNs: number): void {
    for (const ledger of this.#ledgers.values()) ledger.ran(key, durationNs);
  }

  /** Measures the GPU memory again. Returns the keys of the sessions whose charge has changed. */
  async look(): Promise<readonly string[]> {
    const bytes = await this.#read();
    return [...this.#ledgers].flatMap(([device, ledger]) => ledger.measured(bytes.get(`gpu ${device}`) ?? 0));
  }
}
