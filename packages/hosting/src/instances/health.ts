/** What is known of a container's health between two looks at it. */
export interface Health {
  /** Looks in a row that found neither an answer nor any work done. */
  readonly silentCount: number;
  /** Since when nothing was answered. */
  readonly answeredMs: number;
  /** Processor time of the container's main process at the last look, null where it could not be told. */
  readonly workedNs: number | null;
}

export interface HealthLook {
  readonly atMs: number;
  /** A ping, or a request since the last look. */
  readonly isAnswered: boolean;
  readonly workedNs: number | null;
  /** The platform itself was late: what seems to be missing may lie in its own queue. */
  readonly isLate: boolean;
}

export interface HealthLimits {
  readonly missedPingsMax: number;
  /** A container that works and answers nothing for longer than this is taken for one in an endless loop. */
  readonly busyMsMax: number;
}

export function beginHealth(atMs: number): Health {
  return { silentCount: 0, answeredMs: atMs, workedNs: null };
}

/**
 * A container that answers no pings is dead when it does nothing: one that is busy answers later. A stopped or blocked process gets no
 * processor time, which is what tells the two apart. Gives the health after the look, or why the container is to be replaced.
 */
export function judgeHealth(before: Health, look: HealthLook, limits: HealthLimits): Health | string {
  const { atMs, isAnswered, workedNs, isLate } = look;
  if (isAnswered) return { silentCount: 0, answeredMs: atMs, workedNs };
  const unansweredMs = atMs - before.answeredMs;
  if (unansweredMs > limits.busyMsMax) return `worked without an answer for ${Math.round(unansweredMs / 1000)} s`;
  const isWorking = workedNs !== null && before.workedNs !== null && workedNs > before.workedNs;
  const silentCount = isWorking || isLate ? 0 : before.silentCount + 1;
  if (silentCount >= limits.missedPingsMax) return `did not answer ${silentCount} pings and did nothing`;
  return { silentCount, answeredMs: before.answeredMs, workedNs };
}
