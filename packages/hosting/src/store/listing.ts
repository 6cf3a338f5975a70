import type { DocumentPosition } from "../records/index.ts";
import type { RecordKind } from "./record-kind.ts";

/** A time range; null: unbounded at that end. */
export interface TimeRange {
  /** Inclusive. */
  readonly fromMs: number | null;
  /** Exclusive. */
  readonly untilMs: number | null;
}

/** The position of a record in every order of its listing; a page token has that of the last record of a page. */
export interface ListingPosition {
  readonly name: string;
  readonly createdMs: number;
  /** Empty for a record without states. */
  readonly status: string;
}

export interface ListQuery {
  readonly sortBy: "created" | "name" | "status";
  readonly isDescending: boolean;
  /** Case-insensitive. */
  readonly nameContains: string;
  readonly created: TimeRange;
  readonly modified: TimeRange;
  readonly status: string | null;
  /** The listing continues after this position, even if its record was deleted. */
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
 * Number of records that are read at once where some may not match: their bodies are parsed in one tick of the event
 * loop.
 */
const readAtOnceMax = 100;

/** Returns a record's value in each order of a listing: each ends with the name, so that values are unique. */
export function ordersOf({ name, createdMs, state }: Listed): Readonly<Record<string, string>> {
  const created = `${paddedMs(createdMs)} ${name}`;
  return { name, created, ...(state === undefined ? {} : { status: `${state.at} ${name}` }) };
}

/**
 * Reads a page from the position where the previous one ended: nothing before it is read, nothing is sorted, and of the
 * rest only as much as fills the page. Yields to the event loop before each further read.
 */
export async function listPage<Value extends Listed>(
  kind: RecordKind<Value>,
  question: ListQuery,
  nextTick: () => Promise<void>,
  isWanted: ((value: Value) => boolean) | null = null,
): Promise<ListingPage<Value>> {
  const { sortBy, isDescending, limit } = question;
  const found: Value[] = [];
  const isPicky = isWanted !== null || !acceptsAll(question);
  for (let after = startOf(question), isFirst = true; ; isFirst = false) {
    if (isPicky || !isFirst) await nextTick();
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

/** Returns the position after the previous page; for the first page, the end of the time range that comes first. */
function startOf({ sortBy, isDescending, after, created }: ListQuery): DocumentPosition | null {
  if (after !== null) return positionOf(after, sortBy);
  const boundMs = isDescending ? created.untilMs : created.fromMs;
  return sortBy !== "created" || boundMs === null ? null : { value: paddedMs(Math.max(0, boundMs)), key: "" };
}

function positionOf({ name, createdMs, status }: ListingPosition, sortBy: ListQuery["sortBy"]): DocumentPosition {
  const orders = ordersOf({ name, createdMs, state: { at: status } });
  return { value: orders[sortBy] ?? "", key: name.toLowerCase() };
}

/** In the order of creation no match follows a record outside of the time range. */
function isBeyond({ createdMs }: Listed, { sortBy, isDescending, created }: ListQuery): boolean {
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

/** Returns texts of equal length, whose order is the order of the numbers. */
function paddedMs(ms: number): string {
  return String(Math.ceil(ms)).padStart(15, "0");
}
