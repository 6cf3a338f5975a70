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
    const session = this.#byKey.get(key);
    return session === undefined ? null : chargeOf(session);
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
    const session = this.#byKey.get(key);
    if (session !== undefined) session.ranNs += durationNs;
  }

  /** Updates the charges from a measurement of the process. Returns the keys of the sessions whose charge has changed. */
  measured(heldBytes: number): readonly string[] {
    const sessions = [...this.#byKey.values()];
    const before = sessions.map(chargeOf);
    const chargedBytes = sessions.reduce((sum, { openedBytes, keptBytes }) => sum + openedBytes + keptBytes, 0);
    if (heldBytes > chargedBytes) grow(sessions, heldBytes - chargedBytes);
    else shrink(sessions, chargedBytes - heldBytes);
    for (const session of sessions) session.ranNs = 0;
    return this.keys.filter((_, index) => chargeOf(sessions[index] as SessionMemory) !== before[index]);
  }
}

function chargeOf({ openedBytes, keptBytes }: SessionMemory): number {
  return Math.round(openedBytes + keptBytes);
}

function grow(sessions: readonly SessionMemory[], bytes: number): void {
  const ranNs = sumOf(sessions, "ranNs");
  const openedBytes = sumOf(sessions, "openedBytes");
  for (const session of sessions) {
    if (ranNs > 0) session.keptBytes += (bytes * session.ranNs) / ranNs;
    else if (openedBytes > 0) session.keptBytes += (bytes * session.openedBytes) / openedBytes;
    else session.keptBytes += bytes / sessions.length;
  }
}

function shrink(sessions: readonly SessionMemory[], bytes: number): void {
  const keptBytes = sumOf(sessions, "keptBytes");
  const openedBytes = sumOf(sessions, "openedBytes");
  const fromKept = Math.min(bytes, keptBytes);
  const fromOpened = bytes - fromKept;
  for (const session of sessions) {
    if (keptBytes > 0) session.keptBytes *= 1 - fromKept / keptBytes;
    if (openedBytes > 0) session.openedBytes *= 1 - fromOpened / openedBytes;
  }
}

function sumOf(sessions: readonly SessionMemory[], field: keyof SessionMemory): number {
  return sessions.reduce((sum, session) => sum + session[field], 0);
}
