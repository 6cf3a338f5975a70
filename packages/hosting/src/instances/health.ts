/** The health of a container between two checks. */
export interface ProbeState {
  /** Number of consecutive checks without a response or CPU time used. */
  readonly silentCount: number;
  /** Time of the last response. */
  readonly answeredMs: number;
  /** CPU time of the container's main process at the last check in nanoseconds, null if it could not be read. */
  readonly workedNs: number | null;
}

export interface ProbeResult {
  readonly atMs: number;
  /** True after a ping, or a request since the last check, was answered. */
  readonly isAnswered: boolean;
  readonly workedNs: number | null;
  /** True if the platform itself was late: the response may be in its own queue. */
  readonly isLate: boolean;
}

export interface ProbeLimits {
  readonly missedPingsMax: number;
  /** Time after which a container that uses CPU time without responding is assumed to be in an endless loop. */
  readonly busyMsMax: number;
}

export function newProbeState(atMs: number): ProbeState {
  return { silentCount: 0, answeredMs: atMs, workedNs: null };
}

/**
 * Returns the health after a check, or the reason to replace the container. A container that answers no pings is dead
 * if it uses no CPU time: a stopped or blocked process uses none, a busy one answers later.
 */
export function evaluateProbe(before: ProbeState, look: ProbeResult, limits: ProbeLimits): ProbeState | string {
  const { atMs, isAnswered, workedNs, isLate } = look;
  if (isAnswered) return { silentCount: 0, answeredMs: atMs, workedNs };
  const unansweredMs = atMs - before.answeredMs;
  if (unansweredMs > limits.busyMsMax) return `worked without an answer for ${Math.round(unansweredMs / 1000)} s`;
  const isWorking = workedNs !== null && before.workedNs !== null && workedNs > before.workedNs;
  const silentCount = isWorking || isLate ? 0 : before.silentCount + 1;
  if (silentCount >= limits.missedPingsMax) return `did not answer ${silentCount} pings and did nothing`;
  return { silentCount, answeredMs: before.answeredMs, workedNs };
}
