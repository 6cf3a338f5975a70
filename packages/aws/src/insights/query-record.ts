import type { QueryValue } from "./query.ts";

/** A log event as queries see it. */
export interface QueryEvent {
  readonly timestampMs: number;
  readonly ingestedMs: number;
  readonly message: string;
  readonly stream: string;
  /** `<account>:<group>` */
  readonly log: string;
  /** Where it lies, for who asks for it again. */
  readonly pointer: string;
}

/** What the commands of a query hand on: an event with the fields that they have added, or a row of `stats`, which has those alone. */
export class QueryRecord {
  readonly event: QueryEvent | null;
  readonly #values = new Map<string, QueryValue>();
  /** Undefined: not read yet; null: the message is no JSON object. */
  #document: object | null | undefined;

  constructor(event: QueryEvent | null) {
    this.event = event;
  }

  get timestampMs(): number {
    return this.event?.timestampMs ?? 0;
  }

  /** For a bound on memory. */
  get length(): number {
    let length = 200 + (this.event?.message.length ?? 0);
    for (const [name, value] of this.#values)
      length += 50 + name.length + (typeof value === "string" ? value.length : 8);
    return length;
  }

  set(name: string, value: QueryValue): void {
    this.#values.set(name, value);
  }

  /** Times are milliseconds since 1970. */
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
        return this.#discovered(name);
    }
  }

  /** What a message that is a JSON object says: members of members behind dots, places of lists by their number. */
  #discovered(name: string): QueryValue {
    this.#document ??= documentOf(this.event?.message ?? "");
    if (this.#document === null) return null;
    return found(this.#document, name);
  }

  /** The message is not read again. */
  forgetDocument(): void {
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
