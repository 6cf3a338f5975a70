import type { SimulatedMinute, Simulation } from "./simulate-scaling.ts";

const rowCount = 8;
const widthDefault = 72;
const labelWidth = 9;

/**
 * Returns graphs of the load, of the metric with its target, and of the instances, followed by the policy's decisions.
 * Each column of a graph shows the maximum of its minutes.
 */
export function chartText(simulation: Simulation, width = widthDefault): string {
  const { minutes, metricName, targetValue } = simulation;
  const columns = columnsOf(minutes, Math.max(10, width - labelWidth - 2));
  const most = (valueOf: (minute: SimulatedMinute) => number) =>
    columns.map((column) => Math.max(0, ...column.map(valueOf)));
  const segments = [
    graph(
      "load of all instances",
      most(({ load }) => load),
      null,
    ),
    graph(
      `${metricName} (target ${numberText(targetValue)}: -)`,
      most(({ metric }) => metric ?? 0),
      targetValue,
    ),
    graph(
      "instances in service",
      most(({ running }) => running),
      null,
    ),
  ];
  const axis = `${" ".repeat(labelWidth)} 0${timeText((minutes.at(-1)?.atMs ?? 0) + 60_000).padStart(columns.length - 1)}`;
  const rows = activityRows(simulation).map(
    ({ at, text, cause }) => `  ${at.padStart(8)}  ${text}\n            ${cause}`,
  );
  const decided = rows.length === 0 ? ["  nothing"] : rows;
  return [...segments, axis, "", "decided:", ...decided, "", ...summaryOf(simulation)].join("\n") + "\n";
}

function graph(title: string, values: readonly number[], target: number | null): string {
  const top = Math.max(...values, target ?? 0) || 1;
  const lines = [title];
  const targetRow =
    target === null ? null : Math.min(rowCount - 1, Math.max(0, Math.ceil((target / top) * rowCount) - 1));
  for (let row = rowCount - 1; row >= 0; row--) {
    const from = (row / rowCount) * top;
    const empty = row === targetRow ? "-" : " ";
    const cells = values.map((value) => (value > from ? "#" : empty)).join("");
    const label = row === rowCount - 1 ? numberText(top) : row === 0 ? "0" : "";
    lines.push(`${label.padStart(labelWidth)} |${cells}`);
  }
  return `${lines.join("\n")}\n`;
}

/** Groups the minutes into at most `count` columns. */
function columnsOf(minutes: readonly SimulatedMinute[], count: number): readonly (readonly SimulatedMinute[])[] {
  const perColumn = Math.max(1, Math.ceil(minutes.length / count));
  const columns: SimulatedMinute[][] = [];
  for (let at = 0; at < minutes.length; at += perColumn) columns.push(minutes.slice(at, at + perColumn));
  return columns;
}

function numberText(value: number): string {
  return value >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(4)));
}

/**
 * Returns the policy's decisions in order. Consecutive rejected decisions with the same cause and reason share a row.
 */
function activityRows({ activities }: Simulation) {
  const rows: { readonly at: string; readonly text: string; readonly cause: string }[] = [];
  for (const { startMs, description, cause, notScaled } of activities.toSorted((a, b) => a.startMs - b.startMs)) {
    const text =
      notScaled === null ? description.trim() : `not scaled: ${notScaled.code} (${notScaled.currentCapacity})`;
    const last = rows.at(-1);
    if (notScaled !== null && last?.text === text && last.cause === cause) continue;
    rows.push({ at: timeText(startMs), text, cause });
  }
  return rows;
}

function summaryOf({ minutes, targetValue, activities }: Simulation): readonly string[] {
  const instanceMinutes = minutes.reduce((sum, { running }) => sum + running, 0);
  const above = minutes.filter(({ metric }) => metric !== null && metric > targetValue).length;
  const changes = activities.filter(({ notScaled }) => notScaled === null).length;
  const most = Math.max(0, ...minutes.map(({ running }) => running));
  return [
    `${minutes.length} minutes: ${changes} changes, ${most} instances at most, ${instanceMinutes} instance minutes,`,
    `${above} minutes with the metric above its target`,
  ];
}

/** Returns a time since the start as text such as `1h02m30s`. */
function timeText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const [hours, rest] = [Math.floor(seconds / 3600), seconds % 3600];
  const padded = (value: number) => (hours > 0 ? String(value).padStart(2, "0") : String(value));
  const tail = rest % 60 === 0 ? "" : `${String(rest % 60).padStart(2, "0")}s`;
  return `${hours > 0 ? `${hours}h` : ""}${padded(Math.floor(rest / 60))}m${tail}`;
}
