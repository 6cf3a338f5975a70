import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { nextRunMs, ScheduleError, type Schedule } from "./schedule.ts";

const ms = (text: string) => Date.parse(text);
const schedule = (expression: string, more: Partial<Schedule> = {}): Schedule => ({
  expression,
  timezone: "UTC",
  startMs: null,
  endMs: null,
  createdMs: ms("2026-01-01T00:00:00Z"),
  ...more,
});
/** Returns the next `count` times of a schedule; null at the end if it has no more. */
function runs(of: Schedule, after: string, count: number): readonly (string | null)[] {
  const found: (string | null)[] = [];
  for (let afterMs = ms(after); found.length < count;) {
    const nextMs = nextRunMs(of, afterMs);
    found.push(nextMs === null ? null : new Date(nextMs).toISOString().slice(0, 16));
    if (nextMs === null) break;
    afterMs = nextMs;
  }
  return found;
}

test("cron expressions count days of the week from Sunday as 1 and support lists, steps, last days and years", () => {
  for (const [expression, expected] of [
    ["cron(0 10 * * ? *)", ["2026-11-22T10:00", "2026-11-23T10:00"]],
    ["cron(15 12 ? * MON-FRI *)", ["2026-11-23T12:15", "2026-11-24T12:15"]],
    ["cron(15 12 ? * 2-6 *)", ["2026-11-23T12:15", "2026-11-24T12:15"]],
    ["cron(0/30 8 ? * 1,7 *)", ["2026-11-22T08:00", "2026-11-22T08:30"]],
    ["cron(0 8 L * ? *)", ["2026-11-30T08:00", "2026-12-31T08:00"]],
    ["cron(0 8 ? * 6L *)", ["2026-11-27T08:00", "2026-12-25T08:00"]],
    ["cron(0 8 ? * 6#3 *)", ["2026-12-18T08:00", "2027-01-15T08:00"]],
    ["cron(0 8 1 JAN ? 2028)", ["2028-01-01T08:00", null]],
  ] as const)
    assert.deepEqual(runs(schedule(expression), "2026-11-22T00:00:00Z", 2), expected, expression);
});

test("times of a schedule follow its time zone, through daylight saving time too", () => {
  const berlin = { timezone: "Europe/Berlin" };
  assert.deepEqual(runs(schedule("cron(0 9 * * ? *)", berlin), "2026-03-28T00:00:00Z", 2), [
    "2026-03-28T08:00",
    "2026-03-29T07:00",
  ]);
  assert.deepEqual(runs(schedule("at(2026-07-01T09:00:00)", berlin), "2026-03-28T00:00:00Z", 2), [
    "2026-07-01T07:00",
    null,
  ]);
});

test("a rate counts from its start time, and each next time is later than the given one", () => {
  const unit = fc.constantFrom(
    ["minutes", 60_000] as const,
    ["hours", 3_600_000] as const,
    ["days", 86_400_000] as const,
  );
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 500 }),
      unit,
      fc.nat(1e9),
      fc.nat(1e9),
      (count, [name, each], start, more) => {
        const of = schedule(`rate(${count} ${name})`, { startMs: start });
        const next = nextRunMs(of, start - 1 + more) as number;
        assert.ok(next > start - 1 + more && next - (start - 1 + more) <= count * each);
        assert.equal((next - start) % (count * each), 0);
      },
    ),
  );
  assert.equal(nextRunMs(schedule("rate(1 minute)", { startMs: 1000 }), 0), 1000);
});

test("a schedule has no times before its start or after its end", () => {
  const of = schedule("cron(0 10 * * ? *)", { startMs: ms("2026-12-01T10:00:00Z"), endMs: ms("2026-12-02T10:00:00Z") });
  assert.deepEqual(runs(of, "2026-11-22T00:00:00Z", 3), ["2026-12-01T10:00", "2026-12-02T10:00", null]);
});

test("the error for an invalid schedule says what is wrong", () => {
  for (const [expression, pattern] of [
    ["every day", /at\(\.\.\.\), rate/],
    ["rate(0 minutes)", /not a rate/],
    ["rate(5 weeks)", /not a rate/],
    ["at(2026-11-22 10:00)", /not a time/],
    ["at(2026-13-45T10:00:00)", /./],
    ["cron(0 10 * * ?)", /six fields/],
    ["cron(0 10 * * * *)", /'\?'/],
    ["cron(0 10 ? * ? *)", /'\?'/],
    ["cron(61 10 * * ? *)", /61/],
    ["cron(0 10 ? * 0 *)", /1 to 7/],
    ["cron(0 10 ? * 8 *)", /1 to 7/],
  ] as const)
    assert.throws(
      () => nextRunMs(schedule(expression), 0),
      (error) => error instanceof ScheduleError && pattern.test(error.message),
      expression,
    );
  assert.throws(() => nextRunMs(schedule("cron(0 10 * * ? *)", { timezone: "Mars/Crater" }), 0), ScheduleError);
});
