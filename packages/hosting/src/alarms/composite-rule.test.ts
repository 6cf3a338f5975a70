import assert from "node:assert/strict";
import { test } from "node:test";
import type { AlarmState } from "./alarm.ts";
import { alarmNamesInRule, parseAlarmRule, isRuleTrue, AlarmRuleError } from "./composite-rule.ts";

const states: Readonly<Record<string, AlarmState>> = { a: "ALARM", b: "OK", c: "INSUFFICIENT_DATA", "a b": "ALARM" };
const holds = (text: string) => isRuleTrue(parseAlarmRule(text), (name) => states[name] ?? "INSUFFICIENT_DATA");

test("in a composite rule NOT binds closest, then AND, then OR", () => {
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

test("alarmsIn returns each alarm of a rule once", () => {
  assert.deepEqual(alarmNamesInRule(parseAlarmRule('ALARM(a) OR NOT (OK(a) AND OK("x y"))')), ["a", "x y"]);
});

test("the error for an invalid rule gives the position, however deep or long the rule is", () => {
  for (const [text, pattern] of [
    ["", /unexpected end/],
    ["ALARM(a", /unexpected end/],
    ["ALARM()", /unexpected text '\)'/],
    ["ALARM(a) ALARM(b)", /unexpected text 'ALARM\(b\)'/],
    ["ALARMS(a)", /unexpected text 'ALARMS\(a\)'/],
    ["ALARM(a) AND", /unexpected end/],
    [`${"(".repeat(5000)}TRUE${")".repeat(5000)}`, /100 levels/],
    [`${"NOT ".repeat(5000)}TRUE`, /100 levels/],
    [Array.from({ length: 101 }, (_, number) => `ALARM(a${number})`).join(" OR "), /100 alarms/],
  ] as const)
    assert.throws(
      () => parseAlarmRule(text),
      (error) => error instanceof AlarmRuleError && pattern.test(error.message),
      text.slice(0, 40),
    );
});
