import type { LogEvent, LogStreams } from "@galatea/hosting";
import { MatchedLength } from "./matched-length.ts";

export interface FilterEventsRequest {
  readonly group: string;
  readonly streams: readonly string[];
  readonly startTimeMs: number;
  /** Exclusive; null: no limit. */
  readonly endTimeMs: number | null;
  readonly matches: (message: string) => boolean;
  readonly eventsMax: number;
  /** Position of the last event of the previous page. */
  readonly after: string | null;
  /** Resolves in the call's next tick of the event loop. */
  readonly nextTick: () => Promise<void>;
}

export interface FilteredEvent extends LogEvent {
  readonly stream: string;
}

type Location = Pick<FilteredEvent, "timestampMs" | "stream" | "id">;

/** Maximum length of one page, as in CloudWatch Logs. */
const pageLengthMax = 1024 * 1024;
/** Number of events that are matched in one event loop tick, which takes about a millisecond. */
const eventsPerRead = 2000;
/** Number of events that are collected in addition to a full page before all of them are sorted. */
const addedMax = 2000;

/**
 * Returns the matching events of several streams, sorted by time. If more events follow, also returns the position of
 * the page's last event.
 */
export async function filterEvents(
  store: LogStreams,
  request: FilterEventsRequest,
): Promise<{ readonly events: readonly FilteredEvent[]; readonly next: string | null }> {
  const after = request.after === null ? null : placeOf(request.after);
  const page = new PageInOrder(request.eventsMax);
  const matched = new MatchedLength();
  for (const stream of request.streams) {
    for await (const event of eventsOf(store, stream, request, after?.timestampMs ?? request.startTimeMs)) {
      if (after !== null && compare(event, after) <= 0) continue;
      if (matched.shouldYieldBefore(event.message)) await request.nextTick();
      if (request.matches(event.message)) page.add(event);
    }
  }
  const { events, isTruncated } = page.end();
  const last = events.at(-1);
  return { events, next: last === undefined || !isTruncated ? null : textOf(last) };
}

async function* eventsOf(
  store: LogStreams,
  stream: string,
  { group, endTimeMs, nextTick }: FilterEventsRequest,
  startTimeMs: number,
): AsyncGenerator<FilteredEvent> {
  const read = { startTimeMs, endTimeMs, startFromHead: true, eventsMax: eventsPerRead };
  for (let token: string | null = null; ;) {
    await nextTick();
    const page = await store.read(group, stream, { ...read, token });
    if (page.events.length === 0) return;
    for (const event of page.events) yield { ...event, stream };
    token = page.forwardToken;
  }
}

/** Accepts any number of events and keeps the earliest ones, in the memory of a few pages. */
class PageInOrder {
  readonly #eventsMax: number;
  #held: FilteredEvent[] = [];
  #heldLength = 0;
  /** Events after this one are not on the page. */
  #last: FilteredEvent | null = null;

  constructor(eventsMax: number) {
    this.#eventsMax = eventsMax;
  }

  add(event: FilteredEvent): void {
    if (this.#last !== null && compare(event, this.#last) > 0) return;
    this.#held.push(event);
    this.#heldLength += event.message.length;
    if (this.#held.length > this.#eventsMax + addedMax || this.#heldLength > 4 * pageLengthMax) this.#cut();
  }

  end(): { readonly events: readonly FilteredEvent[]; readonly isTruncated: boolean } {
    const { pageCount } = this.#cut();
    return { events: this.#held.slice(0, pageCount), isTruncated: this.#held.length > pageCount };
  }

  /** Keeps the events of the page and one more event, which shows that another page follows. */
  #cut(): { readonly pageCount: number } {
    this.#held.sort(compare);
    let pageCount = 0;
    let length = 0;
    for (const event of this.#held) {
      length += event.message.length;
      if (pageCount >= this.#eventsMax || (pageCount > 0 && length > pageLengthMax)) break;
      pageCount += 1;
    }
    if (this.#held.length > pageCount) {
      this.#held = this.#held.slice(0, pageCount + 1);
      this.#last = this.#held.at(-1) ?? null;
    }
    this.#heldLength = this.#held.reduce((sum, event) => sum + event.message.length, 0);
    return { pageCount };
  }
}

const textOf = ({ timestampMs, id, stream }: Location): string => JSON.stringify([timestampMs, id, stream]);

function placeOf(text: string): Location {
  const [timestampMs, id, stream] = JSON.parse(text) as [number, string, string];
  return { timestampMs, id, stream };
}

function compare(a: Location, b: Location): number {
  return a.timestampMs - b.timestampMs || byText(a.stream, b.stream) || byText(a.id, b.id);
}

function byText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
