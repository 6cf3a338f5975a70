import type { QueryValue } from "./query.ts";

/** A log event for queries. */
export interface QueryEvent {
  readonly timestampMs: number;
  readonly ingestedMs: number;
  readonly message: string;
  readonly stream: string;
  /** The log group, as `<account>:<group>`. */
  readonly log: string;
  /** Position of the event in the logs (`@ptr`), by which a client can request the event again. */
  readonly pointer: string;
}

/**
 * A record that one command of a query passes to the next. It is an event with added fields, or a row of `stats`, which
 * has only computed fields.
 */
export class QueryRecord {
  readonly event: QueryEvent | null;
  readonly #values = new Map<string, QueryValue>();
  /** The parsed message; undefined until it is parsed, null if it is not a JSON object. */
  #document: object | null | undefined;

  constructor(event: QueryEvent | null) {
    this.event = event;
  }

  get timestampMs(): number {
    return this.event?.timestampMs ?? 0;
  }

  /** Approximate size, for the limit on memory. */
  get length(): number {
    let length = 200 + (this.event?.message.length ?? 0);
    for (const [name, value] of this.#values)
      length += 50 + name.length + (typeof value === "string" ? value.length : 8);
    return length;
  }

  set(name: string, value: QueryValue): void {
    this.#values.set(name, value);
  }

  /** Returns a field's value; null if it is missing. Times are milliseconds since 1970. */
  get(name: string): QueryValue {
    const value = this.#values.get(name);
    if (value !== undefined || this.event === null) return value ?? null;
    switch (name) {
      case "@timestamp":
        return this.event.timestampMs;
      case "@ingestionTime":
        return this.event.ingestedMs;
      case "@message":
        return this.event.message;
      case "@logStream":
        return this.event.stream;
      case "@log":
        return this.event.log;
      case "@ptr":
        return this.event.pointer;
      default:
        return this.#documentField(name);
    }
  }

  /** Returns a field of a JSON message by its path, such as `a.b.0`: dots separate members, and numbers select list elements. */
  #documentField(name: string): QueryValue {
    this.#document ??= documentOf(this.event?.message ?? "");
    if (this.#document === null) return null;
    return found(this.#document, name);
  }

  /** Releases the parsed message to save memory; a later access parses the message again. */
  releaseDocument(): void {
    if (this.#document !== null) this.#document = undefined;
  }
}

function documentOf(message: string): object | null {
  if (!/^\s*\{/.test(message)) return null;
  try {
    return JSON.parse(message) as object;
  } catch {
    return null;
  }
}

function found(document: object, name: string): QueryValue {
  if (Object.hasOwn(document, name)) return valueOf((document as Record<string, unknown>)[name]);
  let value: unknown = document;
  for (const step of name.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return null;
    value = (value as Record<string, unknown>)[step];
  }
  return valueOf(value);
}

function valueOf(value: unknown): QueryValue {
  if (typeof value === "string" || typeof value === "number") return value;
  if (typeof value === "boolean") return value ? 1 : 0;
  return value === null || value === undefined ? null : JSON.stringify(value);
}
