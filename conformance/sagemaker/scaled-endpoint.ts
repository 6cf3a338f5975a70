import assert from "node:assert/strict";

/**
 * Checks the output of a script with examples/boto3/endpoint_scaling.py: it scales from one instance to two under load
 * and back, with the reasons.
 */
export function checkScaled(text: string): void {
  const sizes = [...text.matchAll(/^instances: (\d) after \d+ min$/gm)].map(([, count]) => count);
  assert.deepEqual(sizes, ["2", "1"], text);
  const activities = [...text.matchAll(/^(\w+): Setting desired instance count to (\d)\. (.*)$/gm)];
  assert.deepEqual(
    activities.map(([, status, count]) => [status, count]),
    [
      ["Successful", "2"],
      ["Successful", "1"],
    ],
    text,
  );
  for (const [, , , cause = ""] of activities) assert.match(cause, /^monitor alarm TargetTracking-\S+ in state ALARM/);
  assert.match(text, /^dashboard \S+: 11 graphs$/m);
  assert.match(text, /^\d+ \w+ during the scale-out, none failed$/m);
  assert(Number(/^its alarms went into ALARM (\d+) times$/m.exec(text)?.[1]) >= 2, text);
  assert.match(text, /^done$/m);
}
