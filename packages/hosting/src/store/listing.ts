import type { DocumentPosition } from "../records/index.ts";
import type { RecordKind } from "./record-kind.ts";

/** A stretch of time; null: without that end. */
export interface TimeRange {
  /** Inclusive. */
  readonly fromMs: number | null;
  /** Exclusive. */
  readonly untilMs: number | null;
}

/** Where a record stands in every order of its listing: what a token says of the last one of a page. */
export interface ListedPlace {
  readonly name: string;
  readonly createdMs: number;
  /** Empty for what has none. */
  readonly status: string;
}

export interface ListQuestion {
  readonly sortBy: "created" | "name" | "status";
  readonly isDescending: boolean;
  /** In whatever case. */
  readonly nameContains: string;
  readonly created: TimeRange;
  readonly modified: TimeRange;
  readonly status: string | null;
  /** To go on after, whatever has come or gone since. */
  readonly after: ListedPlace | null;
  readonly limit: number;
}

export interface ListAnswer<Value> {
  readonly page: readonly Value[];
  readonly hasMore: boolean;
}

interface Listed {
  readonly name: string;
  readonly createdMs: number;
  readonly modifiedMs?: number;
  readonly state?: { readonly at: string };
}

/** Records that are read at a time where some may not match: their bodies are parsed in one turn of the event loop. */
const readAtOnceMax = 100;

/** The values by which a listing's orders are kept: each ends with the name, which tells equal ones apart. */
export function ordersOf({ name, createdMs, state }: Listed): Readonly<Record<string, string>> {
  const created = `${paddedMs(createdMs)} ${name}`;
  return { name, created, ...(state === undefined ? {} : { status: `${state.at} ${name}` }) };
}

/**
 * Reads a page in the order asked for, from where the page before ended: nothing before it is read, nothing is sorted, and of what
 * follows no more than it takes to fill the page. Before each read that may be for little others have their turn.
 */
export async function listPage<Value extends Listed>(
  kind: RecordKind<Value>,
  question: ListQuestion,
  turn: () => Promise<void>,
  isWanted: ((value: Value) => boolean) | null = null,
): Promise<ListAnswer<Value>> {
  const { sortBy, isDescending, limit } = question;
  const found: Value[] = [];
  const isPicky = isWanted !== null || !acceptsAll(question);
  for (let after = startOf(question), isFirst = true; ; isFirst = false) {
    if (isPicky || !isFirst) await turn();
    const wanted = isPicky ? readAtOnceMax : limit + 1 - found.length;
    const { records, next } = await kind.page({ order: sortBy, isDescending, after, limit: wanted });
    for (const { value } of records) {
      if (isBeyond(value, question)) return { page: found, hasMore: false };
      if (!matches(value, question) || isWanted?.(value) === false) continue;
      if (found.length === limit) return { page: found, hasMore: true };
      found.push(value);
    }
    if (next === null) return { page: found, hasMore: false };
    after = next;
  }
}

/** After the page before; without one at the end of the stretch of time that comes first. */
function startOf({ sortBy, isDescending, after, created }: ListQuestion): DocumentPosition | null {
  if (after !== null) return positionOf(after, sortBy);
  const boundMs = isDescending ? created.untilMs : created.fromMs;
  return sortBy !== "created" || boundMs === null ? null : { value: paddedMs(Math.max(0, boundMs)), key: "" };
}

function positionOf({ name, createdMs, status }: ListedPlace, sortBy: ListQuestion["sortBy"]): DocumentPosition {
  const orders = ordersOf({ name, createdMs, state: { at: status } });
  return { value: orders[sortBy] ?? "", key: name.toLowerCase() };
}

/** In the order of creation nothing follows what lies beyond the stretch of time. */
function isBeyond({ createdMs }: Listed, { sortBy, isDescending, created }: ListQuestion): boolean {
  if (sortBy !== "created") return false;
  if (isDescending) return created.fromMs !== null && createdMs < created.fromMs;
  return created.untilMs !== null && createdMs >= created.untilMs;
}

const isUnbounded = ({ fromMs, untilMs }: TimeRange) => fromMs === null && untilMs === null;

function acceptsAll({ nameContains, created, modified, status }: ListQuestion): boolean {
  return nameContains === "" && isUnbounded(created) && isUnbounded(modified) && status === null;
}

function matches(record: Listed, { nameContains, created, modified, status }: ListQuestion): boolean {
  const { name, createdMs, modifiedMs = createdMs } = record;
  return (
    name.toLowerCase().includes(nameContains.toLowerCase()) &&
    isWithin(createdMs, created) &&
    isWithin(modifiedMs, modified) &&
    (status === null || status === record.state?.at)
  );
}

function isWithin(ms: number, { fromMs, untilMs }: TimeRange): boolean {
  return (fromMs === null || ms >= fromMs) && (untilMs === null || ms < untilMs);
}

/** Equally long for every time, so that texts ascend as the numbers do. */
function paddedMs(ms: number): string {
  return String(Math.ceil(ms)).padStart(15, "0");
}
