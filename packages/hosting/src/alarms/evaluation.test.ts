import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { AlarmState, MissingDataTreatment } from "./alarm.ts";
import { evaluateWindow, percentileSamplesMin, type EvaluationRule } from "./evaluation.ts";

const rule = (datapointsToAlarm: number, missing: MissingDataTreatment): EvaluationRule => ({
  threshold: 1,
  comparison: "GreaterThanThreshold",
  evaluationPeriods: 3,
  datapointsToAlarm,
  missing,
});
/** Returns the values of a window. `X` is a breaching value, `0` another value, and `-` a missing one. */
const windowOf = (text: string) => text.split("").map((sign) => ({ X: 2, "0": 0, "-": null })[sign] as number | null);
const [OK, ALARM, UNKNOWN] = ["OK", "ALARM", "INSUFFICIENT_DATA"] as const;
const kept = "kept";
type Expected = AlarmState | typeof kept;

test("missing datapoints are treated as in the tables of CloudWatch's documentation", () => {
  // Each row has the expected states for missing, ignore, breaching and notBreaching, in this order.
  const rows: readonly (readonly [number, string, readonly [Expected, Expected, Expected, Expected]])[] = [
    [3, "0-X-X", [OK, OK, OK, OK]],
    [3, "----0", [OK, OK, OK, OK]],
    [3, "-----", [UNKNOWN, kept, ALARM, OK]],
    [3, "0XX-X", [ALARM, ALARM, ALARM, ALARM]],
    [3, "--X--", [ALARM, kept, ALARM, OK]],
    [2, "0-X-X", [ALARM, ALARM, ALARM, ALARM]],
    [2, "00X0X", [ALARM, ALARM, ALARM, ALARM]],
    [2, "0-X--", [OK, OK, ALARM, OK]],
    [2, "----0", [OK, OK, ALARM, OK]],
    [2, "---X-", [ALARM, kept, ALARM, OK]],
    // A single breaching datapoint does not decide the state if it is the newest one.
    [3, "----X", [kept, kept, ALARM, OK]],
  ];
  for (const [datapoints, text, expected] of rows) {
    for (const [position, missing] of (["missing", "ignore", "breaching", "notBreaching"] as const).entries()) {
      for (const current of [OK, ALARM, UNKNOWN]) {
        const desired = expected[position] === kept ? current : expected[position];
        const { state } = evaluateWindow(windowOf(text), rule(datapoints, missing), current);
        assert.equal(state, desired, `${datapoints} of 3, ${text}, ${missing}, from ${current}`);
      }
    }
  }
});

test("property: without missing datapoints an alarm is in ALARM exactly when enough of the last datapoints breach", () => {
  const value = fc.double({ min: -5, max: 5, noNaN: true });
  const comparisons = {
    GreaterThanOrEqualToThreshold: (a: number, b: number) => a >= b,
    GreaterThanThreshold: (a: number, b: number) => a > b,
    LessThanThreshold: (a: number, b: number) => a < b,
    LessThanOrEqualToThreshold: (a: number, b: number) => a <= b,
  } as const;
  fc.assert(
    fc.property(
      fc.array(fc.oneof(value, fc.constant(1)), { minLength: 6, maxLength: 6 }),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 4 }),
      fc.constantFrom(...(Object.keys(comparisons) as (keyof typeof comparisons)[])),
      fc.constantFrom<MissingDataTreatment>("missing", "ignore", "breaching", "notBreaching"),
      fc.constantFrom<AlarmState>(OK, ALARM, UNKNOWN),
      (values, periods, datapoints, comparison, missing, current) => {
        fc.pre(datapoints <= periods);
        const requested = {
          threshold: 1,
          comparison,
          evaluationPeriods: periods,
          datapointsToAlarm: datapoints,
          missing,
        };
        const breaching = values.slice(-periods).filter((each) => comparisons[comparison](each, 1)).length;
        const found = evaluateWindow(values, requested, current);
        assert.deepEqual(
          { state: found.state, breaching: found.breachingCount, filled: found.filledCount },
          { state: breaching >= datapoints ? ALARM : OK, breaching, filled: 0 },
        );
      },
    ),
  );
});

test("property: treating data as missing gives a state between those of notBreaching and breaching", () => {
  const sign = fc.constantFrom(null, 0, 2);
  fc.assert(
    fc.property(
      fc.array(sign, { minLength: 5, maxLength: 5 }),
      fc.integer({ min: 1, max: 3 }),
      fc.constantFrom<AlarmState>(OK, ALARM),
      (values, datapoints, current) => {
        const state = (missing: MissingDataTreatment) =>
          evaluateWindow(values, rule(datapoints, missing), current).state;
        if (state("notBreaching") === ALARM) assert.equal(state("missing"), ALARM);
        if (state("breaching") === OK) assert.notEqual(state("missing"), ALARM);
        if (state("missing") === UNKNOWN) assert.ok(values.every((each) => each === null));
      },
    ),
  );
});

test("percentileSamplesMin requires ten samples beyond the percentile on its shorter side", () => {
  assert.deepEqual([50, 90, 99, 10, 1, 99.9].map(percentileSamplesMin), [20, 100, 1000, 100, 1000, 10_000]);
});
