/** The health of a container after its last check. */
export interface ProbeState {
  /** Number of consecutive checks in which the container neither responded nor used CPU time. */
  readonly silentCount: number;
  /** Epoch milliseconds of the last check with a response. */
  readonly answeredMs: number;
  /** CPU time of the container's main process at the last check, in nanoseconds; null if it could not be read. */
  readonly workedNs: number | null;
}

export interface ProbeResult {
  readonly atMs: number;
  /** True if the container has responded to the ping, or to any request since the last check. */
  readonly isAnswered: boolean;
  readonly workedNs: number | null;
  /** True if the platform's own event loop was late, so that the response may already be in the socket. */
  readonly isLate: boolean;
}

export interface ProbeLimits {
  readonly missedPingsMax: number;
  /** Milliseconds without a response after which a container that uses CPU time is assumed to be in an endless loop. */
  readonly busyMsMax: number;
}

export function newProbeState(atMs: number): ProbeState {
  return { silentCount: 0, answeredMs: atMs, workedNs: null };
}

/**
 * Returns the health after a check, or the reason to replace the container. A container that responds to no pings and
 * uses no CPU time is stopped or blocked, and is replaced soon. One that uses CPU time gets more time, because a busy
 * container responds later.
 */
export function evaluateProbe(before: ProbeState, look: ProbeResult, limits: ProbeLimits): ProbeState | string {
  const { atMs, isAnswered, workedNs, isLate } = look;
  if (isAnswered) return { silentCount: 0, answeredMs: atMs, workedNs };
  const unansweredMs = atMs - before.answeredMs;
  if (unansweredMs > limits.busyMsMax)
    return `used CPU without responding to pings for ${Math.round(unansweredMs / 1000)} s`;
  const isWorking = workedNs !== null && before.workedNs !== null && workedNs > before.workedNs;
  const silentCount = isWorking || isLate ? 0 : before.silentCount + 1;
  if (silentCount >= limits.missedPingsMax) return `did not respond to ${silentCount} pings and used no CPU`;
  return { silentCount, answeredMs: before.answeredMs, workedNs };
}
