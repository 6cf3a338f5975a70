import { formatQueryTime, toQueryText } from "./functions.ts";
import { parseQuery, queryRowsMax } from "./parse-query.ts";
import type { QueryCommand, QueryValue } from "./query.ts";
import { QueryRecord, type QueryEvent } from "./query-record.ts";
import { queryResultLengthMax, createQueryStage, type QueryStage } from "./query-stages.ts";

export interface QueryOptions {
  /** Maximum number of rows, if the query has no limit. */
  readonly limit: number;
  readonly nowMs: number;
}

/** One row of a result: column names with their texts, in column order, without missing values. */
export type QueryRow = readonly (readonly [name: string, value: string])[];

/** The result of a query, and the amount of data that it read. */
export interface QueryResult {
  readonly rows: readonly QueryRow[];
  readonly recordsMatched: number;
}

const byTime: QueryCommand = {
  do: "sort",
  by: [{ expression: { is: "field", name: "@timestamp" }, isDescending: true }],
};

interface Column {
  readonly name: string;
  readonly isTime: boolean;
}

/** Runs one query over events. Throws QueryError for an invalid query, QueryLimitExceeded at a limit. */
export class QueryRun {
  readonly #first: QueryStage;
  readonly #columns: readonly Column[];
  readonly #rows: QueryRow[] = [];
  #rowsLength = 0;
  #isFull = false;
  #matchedCount = 0;

  constructor(text: string, { limit, nowMs }: QueryOptions) {
    const commands = withDefaultOrder(parseQuery(text));
    this.#columns = columnsOf(commands);
    const ownLimit = commands.some((command) => command.do === "limit");
    const last: QueryStage = { add: (record) => this.#addRow(record, ownLimit ? queryRowsMax : limit), end: () => {} };
    const counted = countedFrom(commands);
    let stage = counted === commands.length ? this.#counting(last) : last;
    for (const [index, command] of [...commands.entries()].toReversed()) {
      stage = createQueryStage(command, { next: stage, nowMs, sortedRowsMax: sortedRowsMaxOf(commands, index, limit) });
      if (index === counted) stage = this.#counting(stage);
    }
    this.#first = stage;
  }

  add(event: QueryEvent): void {
    this.#first.add(new QueryRecord(event));
  }

  end(): QueryResult {
    this.#first.end();
    return { rows: this.#rows, recordsMatched: this.#matchedCount };
  }

  #counting(next: QueryStage): QueryStage {
    return {
      add: (record) => {
        this.#matchedCount += 1;
        next.add(record);
      },
      end: () => next.end(),
    };
  }

  #addRow(record: QueryRecord, limit: number): void {
    if (this.#isFull || this.#rows.length >= limit) return;
    const row: [string, string][] = [];
    for (const { name, isTime } of this.#columns) {
      const value = record.get(name);
      if (value !== null) row.push([name, printed(value, isTime)]);
    }
    const pointer = record.get("@ptr");
    if (record.event !== null && typeof pointer === "string") row.push(["@ptr", pointer]);
    const length = row.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
    // The first row is included whatever its length.
    this.#isFull = this.#rows.length > 0 && this.#rowsLength + length > queryResultLengthMax;
    if (this.#isFull) return;
    this.#rowsLength += length;
    this.#rows.push(row);
  }
}

/** Sorts a query without an order by time, newest first, before its `limit` or `dedup` selects events. */
function withDefaultOrder(commands: readonly QueryCommand[]): readonly QueryCommand[] {
  const orders = (command: QueryCommand) => command.do === "sort" || command.do === "stats";
  const picks = commands.findIndex(({ do: does }) => does === "limit" || does === "dedup");
  const at = picks === -1 ? commands.length : picks;
  if (commands.slice(0, at).some(orders)) return commands;
  if (picks === -1 && commands.some(orders)) return commands;
  return [...commands.slice(0, at), byTime, ...commands.slice(at)];
}

/** Returns the number of rows that the `limit` after a sort needs, so that the sort keeps no more than these. */
function sortedRowsMaxOf(commands: readonly QueryCommand[], index: number, limit: number): number {
  const next = commands[index + 1];
  if (next?.do === "limit") return next.count;
  return next === undefined ? limit : queryRowsMax;
}

/** Returns the index of the first command after the initial filters; events that reach this command count as matched. */
function countedFrom(commands: readonly QueryCommand[]): number {
  const at = commands.findIndex(
    ({ do: does }) => does === "stats" || does === "sort" || does === "limit" || does === "dedup",
  );
  return at === -1 ? commands.length : at;
}

function columnsOf(commands: readonly QueryCommand[]): readonly Column[] {
  let columns: Column[] = [];
  const add = (name: string, isTime = isTimeField(name)) => {
    if (!columns.some((column) => column.name === name)) columns.push({ name, isTime });
  };
  let isDefault = true;
  for (const command of commands) {
    if (command.do === "fields" || command.do === "display") {
      if (command.do === "display") columns = [];
      for (const { name, expression } of command.of) {
        add(name, expression.is === "field" && isTimeField(expression.name));
      }
      isDefault = false;
    } else if (command.do === "parse") {
      for (const name of command.names) add(name);
    } else if (command.do === "stats") {
      columns = [];
      for (const { name, expression } of command.by)
        add(name, expression.is === "field" && isTimeField(expression.name));
      for (const { name } of command.aggregates) add(name, false);
      isDefault = false;
    }
  }
  if (!isDefault) return columns;
  return [{ name: "@timestamp", isTime: true }, { name: "@message", isTime: false }, ...columns];
}

const isTimeField = (name: string) => name === "@timestamp" || name === "@ingestionTime";

function printed(value: QueryValue, isTime: boolean): string {
  if (isTime && typeof value === "number" && Math.abs(value) <= 8.64e15) return formatQueryTime(value);
  if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toPrecision(12)));
  return toQueryText(value);
}
