import { LoadError } from "./load.ts";

export type Point = readonly [timeMs: number, value: number];

/** Recorded data points of metrics, by column name. */
export interface SeriesTable {
  readonly names: readonly string[];
  /**
   * Returns the points of a column in ascending order of time, without missing values. Throws LoadError for an invalid
   * time or number.
   */
  points(name: string): readonly Point[];
}

type Cell = readonly [time: unknown, value: unknown, where: string];

const pointsMax = 20_000;
const columnsMax = 100;
/** Name of the column if there is only one and it has no name. */
export const unnamed = "value";

/**
 * Reads CSV or JSON. CSV has times and values, with a header line if there are several columns. JSON is a response of
 * GetMetricData or GetMetricStatistics, a list of pairs, or a list of objects. Each object has a time and a member for
 * each metric.
 */
export function readTable(text: string): SeriesTable {
  const columns = /^\s*[[{]/.test(text) ? fromJson(text) : fromCsv(text);
  if (columns.size > columnsMax) throw new LoadError(`the series has more than ${columnsMax} columns`);
  return { names: [...columns.keys()], points: (name) => pointsOf(name, columns.get(name) ?? []) };
}

function pointsOf(name: string, cells: readonly Cell[]): readonly Point[] {
  const points = cells.map(([time, value, where]): Point => {
    const timeMs = timeOf(time);
    const isNumber = typeof value === "number" && Number.isFinite(value) && value >= 0;
    if (timeMs === null || !isNumber) throw new LoadError(`${where} is not a time and a number`);
    return [timeMs, value];
  });
  if (points.length === 0) throw new LoadError(`the series has no datapoints${name === unnamed ? "" : ` of ${name}`}`);
  if (points.length > pointsMax) throw new LoadError(`the series has more than ${pointsMax} datapoints`);
  return points.toSorted(([a], [b]) => a - b);
}

/** Parses a time: epoch seconds, epoch milliseconds, or ISO 8601. Returns null for any other value. */
function timeOf(time: unknown): number | null {
  const number = typeof time === "number" ? time : /^\d+(\.\d+)?$/.test(String(time)) ? Number(time) : null;
  const timeMs = number === null ? Date.parse(String(time)) : number < 1e11 ? number * 1000 : number;
  return Number.isFinite(timeMs) ? timeMs : null;
}

type Columns = Map<string, Cell[]>;

function add(columns: Columns, name: string, cells: readonly Cell[]): void {
  const known = columns.get(name);
  if (known === undefined) columns.set(name, [...cells]);
  else for (const cell of cells) known.push(cell);
}

function fromCsv(text: string): Columns {
  const rows = text
    .split(/\r?\n/)
    .map((line, index) => ({ line, number: index + 1, cells: cellsOf(line) }))
    .filter(({ line }) => line.trim() !== "");
  const [first] = rows;
  if (first === undefined) throw new LoadError("the series has no datapoints");
  const hasNames = first.number === 1 && (timeOf(first.cells[0]) === null || numberOf(first.cells[1]) === null);
  const names = hasNames ? first.cells.slice(1) : [unnamed];
  if (!hasNames && first.cells.length > 2) {
    throw new LoadError("the first line of several columns has to name them, such as time,m1,m2");
  }
  if (new Set(names).size < names.length) throw new LoadError("the series has two columns of one name");
  const columns: Columns = new Map(names.map((name) => [name, []]));
  for (const { line, number, cells } of rows.slice(hasNames ? 1 : 0)) {
    const where = `line ${number} (${line.slice(0, 60)})`;
    const [time = "", ...values] = cells;
    if (timeOf(time) === null) throw new LoadError(`${where} is not a time and a number`);
    for (const [index, name] of names.entries()) {
      const value = values[index] ?? "";
      if (value !== "") columns.get(name)?.push([time, numberOf(value), where]);
    }
  }
  return columns;
}

const cellsOf = (line: string) => line.split(/[,;\t]/).map((cell) => cell.trim().replaceAll('"', ""));

function numberOf(cell: string | undefined): number | null {
  const value = Number(cell);
  return cell === undefined || cell === "" || !Number.isFinite(value) ? null : value;
}

function fromJson(text: string): Columns {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new LoadError(`the series is not JSON: ${(error as Error).message}`);
  }
  const columns: Columns = new Map();
  if (Array.isArray(value)) addRows(columns, value);
  else addResult(columns, (value ?? {}) as Record<string, unknown>);
  return columns;
}

/** Adds the data of a response. Several pages of one metric become one column. */
function addResult(columns: Columns, result: Readonly<Record<string, unknown>>): void {
  const { MetricDataResults: results, Timestamps: times, Values: values, Datapoints: points } = result;
  if (Array.isArray(results)) {
    for (const each of results) addResult(columns, (each ?? {}) as Record<string, unknown>);
    return;
  }
  if (Array.isArray(points)) return addRows(columns, points);
  if (!Array.isArray(times) || !Array.isArray(values)) {
    throw new LoadError(
      "unknown format of the series: expected [time, value] pairs, or the response of GetMetricData or GetMetricStatistics",
    );
  }
  const name = typeof result["Id"] === "string" ? result["Id"] : unnamed;
  add(
    columns,
    name,
    times.map((time, index) => [time, values[index], `datapoint ${index + 1} of ${name}`] as const),
  );
}

const statistics = ["Sum", "Average", "Maximum", "Minimum", "SampleCount", "value"];
const others = new Set(["Timestamp", "time", "Unit"]);

function addRows(columns: Columns, rows: readonly unknown[]): void {
  for (const [index, row] of rows.entries()) {
    const where = `datapoint ${index + 1} of the series`;
    if (Array.isArray(row)) {
      add(columns, unnamed, [[row[0], row[1], where]]);
      continue;
    }
    const point = (row ?? {}) as Record<string, unknown>;
    const time = point["Timestamp"] ?? point["time"];
    const statistic = statistics.find((name) => typeof point[name] === "number");
    if (statistic !== undefined) {
      add(columns, unnamed, [[time, point[statistic], where]]);
      continue;
    }
    const members = Object.entries(point).filter(([name, value]) => !others.has(name) && value !== null);
    if (members.length === 0) throw new LoadError(`${where} is not a time and a number`);
    for (const [name, value] of members) add(columns, name, [[time, value, where]]);
  }
}
