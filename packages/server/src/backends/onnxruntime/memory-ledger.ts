/** The memory charged to a session: the memory that opening it added, and its share of the memory that runs have not released. */
interface SessionMemory {
  openedBytes: number;
  keptBytes: number;
  /** Total duration of the session's runs since the last measurement, in nanoseconds. */
  ranNs: number;
}

/**
 * Divides the memory of a runner process among its sessions, excluding the memory that the process had before its first session. The sum of
 * the charges equals the last measurement. Growth is charged to the sessions that have run since the previous measurement, in proportion to
 * the duration of their runs. A decrease first reduces the charges for memory that runs have not released.
 */
export class MemoryLedger {
  readonly #byKey = new Map<string, SessionMemory>();

  /** Returns the charge of a session; null when the process has not loaded it. */
  bytesOf(key: string): number | null {
    const holding = this.#byKey.get(key);
    return holding === undefined ? null : chargeOf(holding);
  }

  get keys(): readonly string[] {
    return [...this.#byKey.keys()];
  }

  opened(key: string, openedBytes: number): void {
    this.#byKey.set(key, { openedBytes, keptBytes: 0, ranNs: 0 });
  }

  closed(key: string): void {
    this.#byKey.delete(key);
  }

  ran(key: string, durationNs: number): void {
    const holding = this.#byKey.get(key);
    if (holding !== undefined) holding.ranNs += durationNs;
  }

  /** Updates the charges from a measurement of the process. Returns the keys of the sessions whose charge has changed. */
  measured(heldBytes: number): readonly string[] {
    const holdings = [...this.#byKey.values()];
    const before = holdings.map(chargeOf);
    const chargedBytes = holdings.reduce((sum, { openedBytes, keptBytes }) => sum + openedBytes + keptBytes, 0);
    if (heldBytes > chargedBytes) grow(holdings, heldBytes - chargedBytes);
    else shrink(holdings, chargedBytes - heldBytes);
    for (const holding of holdings) holding.ranNs = 0;
    return this.keys.filter((_, index) => chargeOf(holdings[index] as SessionMemory) !== before[index]);
  }
}

function chargeOf({ openedBytes, keptBytes }: SessionMemory): number {
  return Math.round(openedBytes + keptBytes);
}

function grow(holdings: readonly SessionMemory[], bytes: number): void {
  const ranNs = sumOf(holdings, "ranNs");
  const openedBytes = sumOf(holdings, "openedBytes");
  for (const holding of holdings) {
    if (ranNs > 0) holding.keptBytes += (bytes * holding.ranNs) / ranNs;
    else if (openedBytes > 0) holding.keptBytes += (bytes * holding.openedBytes) / openedBytes;
    else holding.keptBytes += bytes / holdings.length;
  }
}

function shrink(holdings: readonly SessionMemory[], bytes: number): void {
  const keptBytes = sumOf(holdings, "keptBytes");
  const openedBytes = sumOf(holdings, "openedBytes");
  const fromKept = Math.min(bytes, keptBytes);
  const fromOpened = bytes - fromKept;
  for (const holding of holdings) {
    if (keptBytes > 0) holding.keptBytes *= 1 - fromKept / keptBytes;
    if (openedBytes > 0) holding.openedBytes *= 1 - fromOpened / openedBytes;
  }
}

function sumOf(holdings: readonly SessionMemory[], field: keyof SessionMemory): number {
  return holdings.reduce((sum, holding) => sum + holding[field], 0);
}
