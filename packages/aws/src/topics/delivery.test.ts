import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultDeliveryPolicy } from "./delivery-policy.ts";
import { decideAfterAttempt, type AttemptOutcome, type Delivery } from "./delivery.ts";

const message = {
  type: "SubscriptionConfirmation",
  messageId: "m",
  topicArn: "t",
  text: "x",
  timestampMs: 0,
  token: "k",
} as const;
const delivery = (attemptCount: number): Delivery => ({ subscriptionArn: "s", message, attemptCount, notBeforeMs: 0 });
const again: AttemptOutcome = { kind: "unreachable", why: "no answer" };

const rows: readonly { readonly outcome: AttemptOutcome; readonly before: number; readonly does: string }[] = [
  { outcome: { kind: "answered", status: 200 }, before: 0, does: "forget" },
  { outcome: { kind: "answered", status: 299 }, before: 3, does: "forget" },
  { outcome: { kind: "answered", status: 302 }, before: 0, does: "retry" },
  { outcome: { kind: "answered", status: 400 }, before: 0, does: "give-up" },
  { outcome: { kind: "answered", status: 429 }, before: 0, does: "retry" },
  { outcome: { kind: "answered", status: 429 }, before: 3, does: "give-up" },
  { outcome: { kind: "answered", status: 503 }, before: 2, does: "retry" },
  { outcome: { kind: "answered", status: 503 }, before: 3, does: "give-up" },
  { outcome: again, before: 0, does: "retry" },
  { outcome: again, before: 3, does: "give-up" },
  { outcome: { kind: "forbidden", why: "this machine" }, before: 0, does: "give-up" },
];

for (const { outcome, before, does } of rows) {
  const text = outcome.kind === "answered" ? `answered ${outcome.status}` : outcome.kind;
  test(`a message with ${before} earlier attempts whose response is ${text}: ${does}`, () => {
    const { retries } = defaultDeliveryPolicy;
    const decision = decideAfterAttempt(delivery(before), outcome, { retries, nowMs: 1000 });
    assert.equal(decision.do, does);
    if (decision.do === "retry") {
      assert.deepEqual([decision.delivery.attemptCount, decision.delivery.notBeforeMs], [before + 1, 21_000]);
    }
  });
}
