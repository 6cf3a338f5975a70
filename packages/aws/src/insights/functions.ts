import type { QueryValue } from "./query.ts";

interface Arity {
  readonly argumentsMin: number;
  readonly argumentsMax: number;
}

type QueryFunction = Arity & { readonly of: (values: readonly QueryValue[], context: FunctionContext) => QueryValue };

/** The time of the event and of the query, for functions that use them. */
export interface FunctionContext {
  readonly timestampMs: number;
  readonly nowMs: number;
}

/** Maximum length of a text that a query creates; equals the maximum length of a message. */
const lengthMax = 256 * 1024;

export function toQueryNumber(value: QueryValue): number | null {
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value !== "string" || value.length > 40 || value.trim() === "") return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

export function toQueryText(value: QueryValue): string {
  return value === null ? "" : typeof value === "boolean" ? (value ? "1" : "0") : String(value);
}

const ofNumber = (of: (value: number) => number): QueryFunction => ({
  argumentsMin: 1,
  argumentsMax: 1,
  of: ([value = null]) => finite(toQueryNumber(value), of),
});

const ofText = (of: (value: string) => QueryValue): QueryFunction => ({
  argumentsMin: 1,
  argumentsMax: 1,
  of: ([value = null]) => (value === null ? null : of(toQueryText(value))),
});

function finite(value: number | null, of: (value: number) => number): number | null {
  if (value === null) return null;
  const found = of(value);
  return Number.isFinite(found) ? found : null;
}

const extreme = (choose: (...values: number[]) => number): QueryFunction => ({
  argumentsMin: 1,
  argumentsMax: 100,
  of: (values) => {
    const numbers = values.map(toQueryNumber).filter((value) => value !== null);
    return numbers.length === 0 ? null : choose(...numbers);
  },
});

/** Returns a function that trims blanks, or given characters, at one or both ends. */
const trim = (ends: "both" | "left" | "right"): QueryFunction => ({
  argumentsMin: 1,
  argumentsMax: 2,
  of: ([value = null, characters]) => {
    if (value === null) return null;
    const text = toQueryText(value);
    const cut = new Set(characters === undefined ? " \t\r\n" : toQueryText(characters));
    let [from, to] = [0, text.length];
    if (ends !== "right") while (from < to && cut.has(text.charAt(from))) from += 1;
    if (ends !== "left") while (to > from && cut.has(text.charAt(to - 1))) to -= 1;
    return text.slice(from, to);
  },
});

const rounded = (round: (value: number) => number): QueryFunction => ({
  argumentsMin: 2,
  argumentsMax: 2,
  of: ([value = null, periodMs = null]) => {
    const [ms, period] = [toQueryNumber(value), toQueryNumber(periodMs)];
    return ms === null || period === null || period <= 0 ? null : round(ms / period) * period;
  },
});

const functions: Readonly<Record<string, QueryFunction>> = {
  abs: ofNumber(Math.abs),
  ceil: ofNumber(Math.ceil),
  floor: ofNumber(Math.floor),
  log: ofNumber(Math.log),
  sqrt: ofNumber(Math.sqrt),
  greatest: extreme(Math.max),
  least: extreme(Math.min),
  ispresent: { argumentsMin: 1, argumentsMax: 1, of: ([value = null]) => value !== null },
  isempty: { argumentsMin: 1, argumentsMax: 1, of: ([value = null]) => value === null || value === "" },
  isblank: { argumentsMin: 1, argumentsMax: 1, of: ([value = null]) => toQueryText(value).trim() === "" },
  coalesce: { argumentsMin: 1, argumentsMax: 100, of: (values) => values.find((value) => value !== null) ?? null },
  concat: { argumentsMin: 1, argumentsMax: 100, of: (values) => values.map(toQueryText).join("").slice(0, lengthMax) },
  strlen: ofText((text) => text.length),
  toupper: ofText((text) => text.toUpperCase()),
  tolower: ofText((text) => text.toLowerCase()),
  trim: trim("both"),
  ltrim: trim("left"),
  rtrim: trim("right"),
  substr: {
    argumentsMin: 2,
    argumentsMax: 3,
    of: ([value = null, from = null, length]) => {
      const start = toQueryNumber(from);
      const count = length === undefined ? undefined : (toQueryNumber(length) ?? 0);
      if (value === null || start === null) return null;
      return toQueryText(value).slice(
        Math.max(0, start),
        count === undefined ? undefined : Math.max(0, start) + Math.max(0, count),
      );
    },
  },
  replace: {
    argumentsMin: 3,
    argumentsMax: 3,
    of: ([value = null, part = null, by = null]) => {
      if (value === null || toQueryText(part) === "") return value;
      const segments = toQueryText(value).split(toQueryText(part));
      // Checked before the join, because many occurrences of a long replacement would need too much memory.
      if (segments.length * toQueryText(by).length > lengthMax) return null;
      return segments.join(toQueryText(by)).slice(0, lengthMax);
    },
  },
  strcontains: {
    argumentsMin: 2,
    argumentsMax: 2,
    of: ([value = null, part = null]) => (toQueryText(value).includes(toQueryText(part)) ? 1 : 0),
  },
  bin: {
    argumentsMin: 1,
    argumentsMax: 1,
    of: ([periodMs = null], { timestampMs }) => {
      const period = toQueryNumber(periodMs);
      return period === null || period <= 0 ? null : timeText(Math.floor(timestampMs / period) * period);
    },
  },
  datefloor: timed(rounded(Math.floor)),
  dateceil: timed(rounded(Math.ceil)),
  frommillis: { argumentsMin: 1, argumentsMax: 1, of: ([value = null]) => timeText(toQueryNumber(value)) },
  tomillis: { argumentsMin: 1, argumentsMax: 1, of: ([value = null]) => timeOf(value) },
  now: { argumentsMin: 0, argumentsMax: 0, of: (_values, { nowMs }) => Math.floor(nowMs / 1000) },
};

function timed({ argumentsMin, argumentsMax, of }: QueryFunction): QueryFunction {
  return {
    argumentsMin,
    argumentsMax,
    of: ([value = null, ...rest], facts) => timeText(toQueryNumber(of([timeOf(value), ...rest], facts))),
  };
}

/** Formats a time as `2026-11-23 02:40:51.914`, in UTC. */
export function formatQueryTime(ms: number): string {
  return new Date(ms).toISOString().replace("T", " ").replace("Z", "");
}

const timeMsMax = 8.64e15;

/** Formats a time; null for an invalid one, including those from dividing by a period near zero. */
const timeText = (ms: number | null) => (ms !== null && Math.abs(ms) <= timeMsMax ? formatQueryTime(ms) : null);

function timeOf(value: QueryValue): number | null {
  const number = toQueryNumber(value);
  if (number !== null) return number;
  if (typeof value !== "string" || !/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/.test(value)) return null;
  const ms = Date.parse(`${value.replace(" ", "T")}Z`);
  return Number.isNaN(ms) ? null : ms;
}

/** Minimum and maximum number of arguments by lower-case function name. */
export const functionArities: ReadonlyMap<string, Arity> = new Map(Object.entries(functions));

export function callFunction(name: string, values: readonly QueryValue[], facts: FunctionContext): QueryValue {
  return functions[name]?.of(values, facts) ?? null;
}
