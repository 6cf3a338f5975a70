import type { DocumentPosition } from "../records/index.ts";
import type { RecordKind } from "./record-kind.ts";

/** A range of epoch times. A null end is unbounded. */
export interface TimeRange {
  /** Inclusive. */
  readonly fromMs: number | null;
  /** Exclusive. */
  readonly untilMs: number | null;
}

/** The values by which a listing sorts a record. A page token contains the position of the last record on the page. */
export interface ListingPosition {
  readonly name: string;
  readonly createdMs: number;
  /** Status of the record; empty for records without a status. */
  readonly status: string;
}

export interface ListQuery {
  readonly sortBy: "created" | "name" | "status";
  readonly isDescending: boolean;
  /** Text that the name must contain, in any case. */
  readonly nameContains: string;
  readonly created: TimeRange;
  readonly modified: TimeRange;
  readonly status: string | null;
  /** The page starts after this position, even if the record at the position was deleted. */
  readonly after: ListingPosition | null;
  readonly limit: number;
}

export interface ListingPage<Value> {
  readonly page: readonly Value[];
  readonly hasMore: boolean;
}

interface Listed {
  readonly name: string;
  readonly createdMs: number;
  readonly modifiedMs?: number;
  readonly state?: { readonly at: string };
}

/**
 * Number of records per read if a filter may reject some of them. The bodies of one read are parsed in one tick of the
 * event loop, so that more would block it.
 */
const readAtOnceMax = 100;

/** Returns the sort value of a record for each order of a listing. The values are unique because each ends with the name. */
export function sortValues({ name, createdMs, state }: Listed): Readonly<Record<string, string>> {
  const created = `${paddedMs(createdMs)} ${name}`;
  return { name, created, ...(state === undefined ? {} : { status: `${state.at} ${name}` }) };
}

/**
 * Reads one page of a listing. The database index gives the order and the start position, so that only the page's records and
 * records that the filter rejects are read. Calls `nextTick` between reads to yield to the event loop.
 */
export async function listPage<Value extends Listed>(
  kind: RecordKind<Value>,
  query: ListQuery,
  nextTick: () => Promise<void>,
  filter: ((value: Value) => boolean) | null = null,
): Promise<ListingPage<Value>> {
  const { sortBy, isDescending, limit } = query;
  const found: Value[] = [];
  const isPicky = filter !== null || !acceptsAll(query);
  for (let after = startOf(query), isFirst = true; ; isFirst = false) {
    if (isPicky || !isFirst) await nextTick();
    const desired = isPicky ? readAtOnceMax : limit + 1 - found.length;
    const { records, next } = await kind.page({ order: sortBy, isDescending, after, limit: desired });
    for (const { value } of records) {
      if (isAfterTimeRange(value, query)) return { page: found, hasMore: false };
      if (!matches(value, query) || filter?.(value) === false) continue;
      if (found.length === limit) return { page: found, hasMore: true };
      found.push(value);
    }
    if (next === null) return { page: found, hasMore: false };
    after = next;
  }
}

/** Returns the position at which a page starts: the end of the previous page, or for the first page the start of the time range. */
function startOf({ sortBy, isDescending, after, created }: ListQuery): DocumentPosition | null {
  if (after !== null) return positionOf(after, sortBy);
  const boundMs = isDescending ? created.untilMs : created.fromMs;
  return sortBy !== "created" || boundMs === null ? null : { value: paddedMs(Math.max(0, boundMs)), key: "" };
}

function positionOf({ name, createdMs, status }: ListingPosition, sortBy: ListQuery["sortBy"]): DocumentPosition {
  const orders = sortValues({ name, createdMs, state: { at: status } });
  return { value: orders[sortBy] ?? "", key: name.toLowerCase() };
}

/** Returns true if no further record can match. In the order of creation, all following records are outside the time range, too. */
function isAfterTimeRange({ createdMs }: Listed, { sortBy, isDescending, created }: ListQuery): boolean {
  if (sortBy !== "created") return false;
  if (isDescending) return created.fromMs !== null && createdMs < created.fromMs;
  return created.untilMs !== null && createdMs >= created.untilMs;
}

const isUnbounded = ({ fromMs, untilMs }: TimeRange) => fromMs === null && untilMs === null;

function acceptsAll({ nameContains, created, modified, status }: ListQuery): boolean {
  return nameContains === "" && isUnbounded(created) && isUnbounded(modified) && status === null;
}

function matches(record: Listed, { nameContains, created, modified, status }: ListQuery): boolean {
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

/** Returns a number as text of fixed length, so that texts sort like the numbers. */
function paddedMs(ms: number): string {
  return String(Math.ceil(ms)).padStart(15, "0");
}
