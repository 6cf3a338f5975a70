import { Cron } from "croner";

/** The times of a scheduled action, in Application Auto Scaling's syntax: `at(...)`, `rate(...)` or `cron(...)`. */
export interface Schedule {
  readonly expression: string;
  /** IANA name of the time zone; used by `at` and `cron`. */
  readonly timezone: string;
  /** Epoch time before which nothing runs, and from which rates are counted; null: the creation time. */
  readonly startMs: number | null;
  /** Epoch time after which nothing runs; null: unlimited. */
  readonly endMs: number | null;
  readonly createdMs: number;
}

/** A syntax error in a schedule. */
export class ScheduleError extends Error {}

const unitMs: Readonly<Record<string, number>> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };
const daysOfWeek = 7;

/** Returns the first time of a schedule after `afterMs`; null if there is none. Throws ScheduleError. */
export function nextRunMs(schedule: Schedule, afterMs: number): number | null {
  const found = /^(at|rate|cron)\((.*)\)$/s.exec(schedule.expression.trim());
  if (found === null) throw new ScheduleError("a schedule is at(...), rate(...) or cron(...)");
  const [, kind, body] = found as unknown as readonly [string, "at" | "rate" | "cron", string];
  const beginMs = schedule.startMs ?? schedule.createdMs;
  const nextMs =
    kind === "rate"
      ? nextOfRate(body, beginMs, afterMs)
      : nextOfPattern(
          kind === "at" ? atPattern(body) : cronPattern(body),
          schedule.timezone,
          Math.max(afterMs, beginMs - 1),
        );
  return nextMs === null || (schedule.endMs !== null && nextMs > schedule.endMs) ? null : nextMs;
}

function nextOfRate(body: string, beginMs: number, afterMs: number): number {
  const [, count, unit] = /^\s*([1-9]\d{0,8})\s+(minute|hour|day)s?\s*$/.exec(body) ?? [];
  if (count === undefined || unit === undefined) {
    throw new ScheduleError(`'${body}' is not a rate: a positive number and minutes, hours or days`);
  }
  const everyMs = Number(count) * (unitMs[unit] as number);
  const passed = Math.floor((afterMs - beginMs) / everyMs) + 1;
  return beginMs + Math.max(0, passed) * everyMs;
}

function nextOfPattern(pattern: string, timezone: string, afterMs: number): number | null {
  try {
    const cron = new Cron(pattern, { timezone, paused: true, sloppyRanges: true });
    return cron.nextRun(new Date(afterMs))?.getTime() ?? null;
  } catch (error) {
    throw new ScheduleError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function atPattern(body: string): string {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/.test(body))
    throw new ScheduleError(`'${body}' is not a time: yyyy-mm-ddThh:mm:ss`);
  return body;
}

/**
 * Converts AWS's cron fields to a cron pattern. The fields are minutes, hours, days of the month, months, days of the
 * week (1 is Sunday) and years. One of the two day fields is `?`.
 */
function cronPattern(body: string): string {
  const fields = body.trim().split(/\s+/);
  if (fields.length !== 6) throw new ScheduleError(`cron takes six fields; '${body}' has ${fields.length}`);
  const [minutes, hours, daysOfMonth, months, days, years] = fields as [string, string, string, string, string, string];
  if ((daysOfMonth === "?") === (days === "?")) {
    throw new ScheduleError("exactly one of the fields for the days of the month and of the week must be '?'");
  }
  const wildcard = (field: string) => (field === "?" ? "*" : field);
  return ["0", minutes, hours, wildcard(daysOfMonth), months, weekDays(wildcard(days)), years].join(" ");
}

/** Converts days of the week to numbers from 0 (Sunday). Numbers after `#` and steps after `/` are not changed. */
function weekDays(field: string): string {
  const segments = field.split(",").map((segment) =>
    segment.replace(
      /^(\d)(-(\d))?(L)?/,
      (_, from: string, range: string | undefined, to: string | undefined, last = "") => {
        const day = (text: string): number => {
          const value = Number(text);
          if (value < 1 || value > daysOfWeek)
            throw new ScheduleError(`days of the week are 1 to 7 or SUN to SAT; not ${text}`);
          return value - 1;
        };
        return `${day(from)}${range === undefined ? "" : `-${day(to as string)}`}${last === "" ? "" : "#L"}`;
      },
    ),
  );
  return segments.join(",");
}
