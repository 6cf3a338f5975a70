/** The width of a tier's points, and the time after which they are merged into the next tier. */
export interface SeriesTier {
  readonly periodMs: number;
  readonly retentionMs: number;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/**
 * CloudWatch's retention: 3 hours for points of 10 s, 15 days for minutes, 63 days for 5 minutes, 455 days for hours.
 */
export const defaultTiers: readonly SeriesTier[] = [
  { periodMs: 10_000, retentionMs: 3 * hourMs },
  { periodMs: 60_000, retentionMs: 15 * dayMs },
  { periodMs: 300_000, retentionMs: 63 * dayMs },
  { periodMs: hourMs, retentionMs: 455 * dayMs },
];

/**
 * Returns the time before which points of a tier are merged into the next tier, or dropped. The time is a multiple of
 * the next tier's period, so that every merged point is complete.
 */
export function tierCutoffMs(tiers: readonly SeriesTier[], index: number, nowMs: number): number {
  const beforeMs = nowMs - (tiers[index] as SeriesTier).retentionMs;
  const next = tiers[index + 1];
  return next === undefined ? beforeMs : beforeMs - (beforeMs % next.periodMs);
}
