import assert from "node:assert/strict";
import { test } from "node:test";
import type { AlarmState } from "./alarm.ts";
import { alarmsOfRule, parseRule, ruleHolds, RuleError } from "./composite-rule.ts";

const states: Readonly<Record<string, AlarmState>> = { a: "ALARM", b: "OK", c: "INSUFFICIENT_DATA", "a b": "ALARM" };
const holds = (text: string) => ruleHolds(parseRule(text), (name) => states[name] ?? "INSUFFICIENT_DATA");

test("rules hold as their words say: NOT binds closest, then AND, then OR", () => {
  for (const [text, expected] of [
    ["ALARM(a)", true],
    ["ALARM(b)", false],
    ["OK(b) AND INSUFFICIENT_DATA(c)", true],
    ["NOT ALARM(b) AND ALARM(a)", true],
    ["NOT (ALARM(b) OR ALARM(a))", false],
    ["ALARM(a) OR ALARM(b) AND FALSE", true],
    ["(ALARM(a) OR ALARM(b)) AND FALSE", false],
    ["NOT NOT TRUE", true],
    ['ALARM("a b")', true],
    ["ALARM(arn:aws:cloudwatch:us-east-1:000000000000:alarm:a)", true],
    ['\n alarm( "a" )\tand not ok(a) ', true],
    ["ALARM(OK)", false],
  ] as const)
    assert.equal(holds(text), expected, text);
});

test("the alarms of a rule are named once each", () => {
  assert.deepEqual(alarmsOfRule(parseRule('ALARM(a) OR NOT (OK(a) AND OK("x y"))')), ["a", "x y"]);
});

test("what is no rule is refused with the place, however deep or long it is", () => {
  for (const [text, told] of [
    ["", /ends too early/],
    ["ALARM(a", /ends too early/],
    ["ALARM()", /'\)' is not expected/],
    ["ALARM(a) ALARM(b)", /'ALARM\(b\)' is not expected/],
    ["ALARMS(a)", /'ALARMS\(a\)' is not expected/],
    ["ALARM(a) AND", /ends too early/],
    [`${"(".repeat(5000)}TRUE${")".repeat(5000)}`, /100 levels/],
    [`${"NOT ".repeat(5000)}TRUE`, /100 levels/],
    [Array.from({ length: 101 }, (_, number) => `ALARM(a${number})`).join(" OR "), /100 alarms/],
  ] as const)
    assert.throws(
      () => parseRule(text),
      (error) => error instanceof RuleError && told.test(error.message),
      text.slice(0, 40),
    );
});
