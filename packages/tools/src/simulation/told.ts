import type { Simulation } from "./simulate-scaling.ts";

export interface ActivityRow {
  readonly at: string;
  readonly text: string;
  readonly cause: string;
}

/** What the policy decided, in its order; what was not scaled is told once for each cause and reason in a row. */
export function activityRows({ activities }: Simulation): readonly ActivityRow[] {
  const rows: ActivityRow[] = [];
  for (const { startMs, description, cause, notScaled } of activities.toSorted((a, b) => a.startMs - b.startMs)) {
    const text =
      notScaled === null ? description.trim() : `not scaled: ${notScaled.code} (${notScaled.currentCapacity})`;
    const last = rows.at(-1);
    if (notScaled !== null && last?.text === text && last.cause === cause) continue;
    rows.push({ at: timeText(startMs), text, cause });
  }
  return rows;
}

export function summaryOf({ minutes, targetValue, activities }: Simulation): readonly string[] {
  const instanceMinutes = minutes.reduce((sum, { running }) => sum + running, 0);
  const above = minutes.filter(({ metric }) => metric !== null && metric > targetValue).length;
  const changes = activities.filter(({ notScaled }) => notScaled === null).length;
  const most = Math.max(0, ...minutes.map(({ running }) => running));
  return [
    `${minutes.length} minutes: ${changes} changes, ${most} instances at most, ${instanceMinutes} instance minutes,`,
    `${above} minutes with the metric above its target`,
  ];
}

/** Since the beginning: 1h02m30s. */
export function timeText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const [hours, rest] = [Math.floor(seconds / 3600), seconds % 3600];
  const padded = (value: number) => (hours > 0 ? String(value).padStart(2, "0") : String(value));
  const tail = rest % 60 === 0 ? "" : `${String(rest % 60).padStart(2, "0")}s`;
  return `${hours > 0 ? `${hours}h` : ""}${padded(Math.floor(rest / 60))}m${tail}`;
}
