import assert from "node:assert/strict";
import { test } from "node:test";
import {
  defaultDeliveryPolicy,
  parseDeliveryPolicy,
  mergeDeliveryPolicy,
  redeliveryDelayMs,
} from "./delivery-policy.ts";

/** Returns all retry delays of a policy, in seconds. */
function delays(healthyRetryPolicy: object): readonly number[] {
  const said = parseDeliveryPolicy(JSON.stringify({ healthyRetryPolicy }), "subscription");
  const { retries } = mergeDeliveryPolicy(defaultDeliveryPolicy, said);
  const found: number[] = [];
  for (let count = 1; ; count += 1) {
    const delayMs = redeliveryDelayMs(retries, count);
    if (delayMs === null) return found;
    found.push(delayMs / 1000);
  }
}

test("retries follow SNS's four phases: immediate, minimum delay, backoff, maximum delay", () => {
  assert.deepEqual(delays({}), [20, 20, 20]);
  assert.deepEqual(delays({ numRetries: 0 }), []);
  const phases = { numNoDelayRetries: 1, numMinDelayRetries: 2, numMaxDelayRetries: 1, numRetries: 9 };
  const range = { minDelayTarget: 10, maxDelayTarget: 50 };
  assert.deepEqual(delays({ ...phases, ...range }), [0, 10, 10, 10, 20, 30, 40, 50, 50]);
});

test("each backoff function grows from the minimum delay to the maximum and never shrinks", () => {
  for (const backoffFunction of ["linear", "arithmetic", "geometric", "exponential"]) {
    const found = delays({ backoffFunction, numRetries: 10, minDelayTarget: 1, maxDelayTarget: 100 });
    assert.deepEqual([found[0], found.at(-1), found.length], [1, 100, 10]);
    assert.deepEqual(
      found,
      found.toSorted((a, b) => a - b),
    );
  }
});

test("a value missing in a subscription's policy comes from its topic, or from SNS's defaults", () => {
  const topic = { http: { defaultThrottlePolicy: { maxReceivesPerSecond: 5 }, disableSubscriptionOverrides: true } };
  const said = parseDeliveryPolicy(JSON.stringify(topic), "topic");
  assert.equal(said.mayBeOverridden, false);
  const under = mergeDeliveryPolicy(defaultDeliveryPolicy, said);
  const own = parseDeliveryPolicy('{"requestPolicy":{"headerContentType":"application/json"}}', "subscription");
  assert.deepEqual(mergeDeliveryPolicy(under, own), {
    retries: defaultDeliveryPolicy.retries,
    receivesPerSecondMax: 5,
    contentType: "application/json",
  });
});

const refusals: readonly (readonly [policy: object, words: RegExp])[] = [
  [{ healthyRetryPolicy: { numRetries: 101 } }, /numRetries must be a whole number between 0 and 100/],
  [{ healthyRetryPolicy: { minDelayTarget: 30 } }, /minDelayTarget must not exceed maxDelayTarget/],
  [{ healthyRetryPolicy: { numNoDelayRetries: 4 } }, /numRetries must be at least the sum/],
  [{ healthyRetryPolicy: { numRetries: 100, maxDelayTarget: 3600 } }, /together must not exceed 3600 seconds/],
  [{ healthyRetryPolicy: { backoffFunction: "cubic" } }, /backoffFunction must be one of/],
  [{ throttlePolicy: { maxReceivesPerSecond: 0 } }, /maxReceivesPerSecond must be greater than or equal to 1/],
  [{ requestPolicy: { headerContentType: "text/plain\r\nx: y" } }, /headerContentType is not a supported/],
  [{ http: {} }, /unexpected JSON member: http/],
];

for (const [policy, words] of refusals) {
  test(`an invalid delivery policy is rejected: ${JSON.stringify(policy)}`, () => {
    assert.throws(() => parseDeliveryPolicy(JSON.stringify(policy), "subscription"), {
      code: "InvalidParameter",
      message: words,
    });
  });
}
