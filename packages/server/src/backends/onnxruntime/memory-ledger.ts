/** What a session is charged with: what opening it took, and its part of what runs have left behind. */
interface Holding {
  openedBytes: number;
  keptBytes: number;
  /** How long its runs took since the last look. */
  ranNs: number;
}

/**
 * Whose the memory is that a process with sessions holds beyond what it holds without any. The sum over all sessions is what was last
 * measured: growth is theirs whose runs were over since the look before, by the time that they took; what goes, goes from what runs
 * have left behind first.
 */
export class MemoryLedger {
  readonly #byKey = new Map<string, Holding>();

  /** null: the process has no such session. */
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

  /** Shares out what the process now holds; the sessions whose charge is another now. */
  measured(heldBytes: number): readonly string[] {
    const holdings = [...this.#byKey.values()];
    const before = holdings.map(chargeOf);
    const chargedBytes = holdings.reduce((sum, { openedBytes, keptBytes }) => sum + openedBytes + keptBytes, 0);
    if (heldBytes > chargedBytes) grow(holdings, heldBytes - chargedBytes);
    else shrink(holdings, chargedBytes - heldBytes);
    for (const holding of holdings) holding.ranNs = 0;
    return this.keys.filter((_, index) => chargeOf(holdings[index] as Holding) !== before[index]);
  }
}

function chargeOf({ openedBytes, keptBytes }: Holding): number {
  return Math.round(openedBytes + keptBytes);
}

function grow(holdings: readonly Holding[], bytes: number): void {
  const ranNs = sumOf(holdings, "ranNs");
  const openedBytes = sumOf(holdings, "openedBytes");
  for (const holding of holdings) {
    if (ranNs > 0) holding.keptBytes += (bytes * holding.ranNs) / ranNs;
    else if (openedBytes > 0) holding.keptBytes += (bytes * holding.openedBytes) / openedBytes;
    else holding.keptBytes += bytes / holdings.length;
  }
}

function shrink(holdings: readonly Holding[], bytes: number): void {
  const keptBytes = sumOf(holdings, "keptBytes");
  const openedBytes = sumOf(holdings, "openedBytes");
  const fromKept = Math.min(bytes, keptBytes);
  const fromOpened = bytes - fromKept;
  for (const holding of holdings) {
    if (keptBytes > 0) holding.keptBytes *= 1 - fromKept / keptBytes;
    if (openedBytes > 0) holding.openedBytes *= 1 - fromOpened / openedBytes;
  }
}

function sumOf(holdings: readonly Holding[], field: keyof Holding): number {
  return holdings.reduce((sum, holding) => sum + holding[field], 0);
}
