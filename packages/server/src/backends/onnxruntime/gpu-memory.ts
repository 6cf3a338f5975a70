import type { DeviceBytes } from "../device-bytes.ts";
import { MemoryLedger } from "./memory-ledger.ts";

/**
 * What a process's sessions hold of GPUs: what the driver says of the process, shared out over its sessions on each. What the first
 * session's opening takes beyond its own (CUDA's context, libraries' code) is charged to it.
 */
export class GpuMemory {
  readonly #read: () => Promise<DeviceBytes>;
  readonly #ledgers = new Map<number, MemoryLedger>();

  /** `read` gives what the process holds; nothing where the driver does not tell. */
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

  /** Opens a session and charges it with what that took. Gives what `open` gives. */
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

  /** Measures anew; the sessions whose charge is another now. */
  async look(): Promise<readonly string[]> {
    const bytes = await this.#read();
    return [...this.#ledgers].flatMap(([device, ledger]) => ledger.measured(bytes.get(`gpu ${device}`) ?? 0));
  }
}
