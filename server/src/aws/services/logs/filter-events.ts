import { AwsError } from "../../../base/index.ts";
import type { LogStore, LogStoreEvent } from "./log-store.ts";

export interface FilterRequest {
  readonly group: string;
  readonly streams: readonly string[];
  readonly startTimeMs: number;
  /** Exclusive; null: to the end. */
  readonly endTimeMs: number | null;
  readonly matches: (message: string) => boolean;
  readonly eventsMax: number;
  readonly token: string | null;
}

export interface FilteredEvent extends LogStoreEvent {
  readonly stream: string;
}

interface Cursor {
  readonly timestampMs: number;
  /** Events of that time which earlier pages had. */
  readonly skipCount: number;
}

/** Matching events of several streams in one order of time. A page's token is the time it ended at and how many of it it had. */
export async function filterEvents(
  store: LogStore,
  request: FilterRequest,
): Promise<{ readonly events: readonly FilteredEvent[]; readonly nextToken: string | null }> {
  const cursor =
    request.token === null ? { timestampMs: request.startTimeMs, skipCount: 0 } : parseCursor(request.token);
  const wantedCount = request.eventsMax + cursor.skipCount + 1;
  const found: FilteredEvent[] = [];
  for (const stream of request.streams) {
    found.push(...(await matchingEvents(store, stream, { ...request, startTimeMs: cursor.timestampMs }, wantedCount)));
  }
  found.sort((a, b) => a.timestampMs - b.timestampMs || compare(a.stream, b.stream) || compare(a.id, b.id));
  const rest = found.slice(cursor.skipCount);
  const events = rest.slice(0, request.eventsMax);
  const last = events.at(-1);
  if (last === undefined || rest.length <= events.length) return { events, nextToken: null };
  const ofLastTime = events.filter((event) => event.timestampMs === last.timestampMs).length;
  const skipCount = ofLastTime + (last.timestampMs === cursor.timestampMs ? cursor.skipCount : 0);
  return { events, nextToken: `${last.timestampMs}/${skipCount}` };
}

async function matchingEvents(
  store: LogStore,
  stream: string,
  { group, startTimeMs, endTimeMs, matches }: FilterRequest,
  countMax: number,
): Promise<readonly FilteredEvent[]> {
  const found: FilteredEvent[] = [];
  let token: string | null = null;
  while (found.length < countMax) {
    const page = await store.read(group, stream, {
      startTimeMs,
      endTimeMs,
      startFromHead: true,
      eventsMax: 10_000,
      token,
    });
    if (page.events.length === 0) break;
    for (const event of page.events) if (matches(event.message)) found.push({ ...event, stream });
    token = page.forwardToken;
  }
  return found.slice(0, countMax);
}

function parseCursor(token: string): Cursor {
  const match = /^(\d{1,15})\/(\d{1,9})$/.exec(token);
  if (match === null) throw new AwsError("InvalidParameterException", "The specified nextToken is invalid.");
  return { timestampMs: Number(match[1]), skipCount: Number(match[2]) };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
