import { boundedDuration, LoadError } from "./load.ts";
import { unnamed, type SeriesTable } from "./series-table.ts";
import type { WatchedMetric } from "./watched-metrics.ts";

/** A recording, and the settings that define how its metrics depend on the number of instances. */
export interface Recorded {
  readonly table: SeriesTable;
  /** Number of instances that shared the load in the recording. */
  readonly instanceCount: number;
  /**
   * Names of metrics that do not depend on the number of instances, such as a backlog. All other metrics are values per
   * instance.
   */
  readonly totals: readonly string[];
  /** Names of metrics whose value is the number of instances in service. They need no column. */
  readonly instanceCounts: readonly string[];
}

export type RecordedMetric =
  /**
   * A recorded metric. For `shared`, `at` returns the sum over all instances; for `total`, it returns the value itself.
   * It returns null if there is no measurement.
   */
  | { readonly kind: "shared" | "total"; readonly metric: WatchedMetric; at(timeMs: number): number | null }
  | { readonly kind: "instances"; readonly metric: WatchedMetric };

export interface RecordedMetrics {
  readonly durationMs: number;
  readonly metrics: readonly RecordedMetric[];
}

/** Maximum time for which a value applies if a later value follows. */
const heldMs = 5 * 60_000;
const lastHeldMs = 60_000;

/** Returns the recorded values of a policy's metrics. For a metric without a column, throws LoadError with a remedy. */
export function recordedMetrics(watched: readonly WatchedMetric[], recorded: Recorded): RecordedMetrics {
  const { table, instanceCount, totals, instanceCounts } = recorded;
  for (const name of [...totals, ...instanceCounts]) {
    if (watched.some((metric) => isNamed(metric, name))) continue;
    throw new LoadError(`the policy has no metric ${name}: its metrics are ${namesOf(watched)}`);
  }
  const has = (names: readonly string[], metric: WatchedMetric) => names.some((name) => isNamed(metric, name));
  const columns = new Map(
    watched
      .filter((metric) => !has(instanceCounts, metric))
      .map((metric) => [metric, table.points(columnOf(metric, watched, table))] as const),
  );
  if (columns.size === 0) throw new LoadError("a metric that is not the number of instances is needed");
  const startMs = Math.min(...[...columns.values()].map((points) => points[0]?.[0] ?? Infinity));
  let durationMs = 0;
  const metrics = watched.map((metric): RecordedMetric => {
    const points = columns.get(metric);
    if (points === undefined) return { kind: "instances", metric };
    const kind = has(totals, metric) ? "total" : "shared";
    const scale = kind === "shared" ? instanceCount : 1;
    durationMs = Math.max(durationMs, (points.at(-1)?.[0] ?? startMs) - startMs + lastHeldMs);
    return {
      kind,
      metric,
      at: heldValues(points.map(([timeMs, value]) => [timeMs - startMs, value * scale] as const)),
    };
  });
  return { durationMs: boundedDuration(durationMs), metrics };
}

const isNamed = ({ id, metric }: WatchedMetric, name: string) => id === name || metric.metricName === name;

function columnOf(metric: WatchedMetric, watched: readonly WatchedMetric[], { names }: SeriesTable): string {
  const { id, statistic } = metric;
  const { metricName } = metric.metric;
  if (names.includes(id)) return id;
  const isOnlyOfName = watched.filter((each) => each.metric.metricName === metricName).length === 1;
  if (isOnlyOfName && names.includes(metricName)) return metricName;
  const only = watched.length === 1 ? (names.find((name) => name === unnamed) ?? names[0]) : undefined;
  if (only !== undefined && (names.length === 1 || only === unnamed)) return only;
  throw new LoadError(
    `the series has no column for ${id === metricName ? id : `${id} (${metricName})`}, ${statistic}. Its columns are ${names.join(", ") || "none"}; ` +
      `the policy's metrics are ${namesOf(watched)}. Name a column so, or request it from GetMetricData with ReturnData true`,
  );
}

const namesOf = (watched: readonly WatchedMetric[]) => watched.map(({ id }) => id).join(", ");

/**
 * Returns a function that finds the value that applies at a time. Times must ascend from call to call, because each
 * search continues from the previous one.
 */
function heldValues(points: readonly (readonly [timeMs: number, value: number])[]) {
  let at = 0;
  return (timeMs: number): number | null => {
    if (timeMs < (points[at]?.[0] ?? 0)) at = 0;
    while (at + 1 < points.length && timeMs >= (points[at + 1]?.[0] ?? Infinity)) at++;
    const [fromMs, value] = points[at] ?? [Infinity, 0];
    const untilMs = fromMs + (at + 1 < points.length ? heldMs : lastHeldMs);
    return timeMs >= fromMs && timeMs < untilMs ? value : null;
  };
}
