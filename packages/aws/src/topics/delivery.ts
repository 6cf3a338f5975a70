import { unreachable } from "@galatea/base";
import { redeliveryDelayMs, type RetryPolicy } from "./delivery-policy.ts";
import type { TopicMessage } from "./message-format.ts";

/** A message to deliver to one subscription. */
export interface Delivery {
  readonly subscriptionArn: string;
  readonly message: TopicMessage;
  readonly attemptCount: number;
  readonly notBeforeMs: number;
}

/** The outcome of one attempt. */
export type AttemptOutcome =
  | { readonly kind: "answered"; readonly status: number }
  /** No connection could be opened, or no response arrived in time. */
  | { readonly kind: "unreachable"; readonly why: string }
  /** The operator's settings forbid sending messages to this address. */
  | { readonly kind: "forbidden"; readonly why: string };

export type DeliveryDecision =
  | { readonly do: "forget" }
  | { readonly do: "retry"; readonly delivery: Delivery }
  | { readonly do: "give-up"; readonly why: string };

export function decideAfterAttempt(
  delivery: Delivery,
  outcome: AttemptOutcome,
  { retries, nowMs }: { readonly retries: RetryPolicy; readonly nowMs: number },
): DeliveryDecision {
  const attemptCount = delivery.attemptCount + 1;
  const again = (why: string): DeliveryDecision => {
    const delayMs = redeliveryDelayMs(retries, attemptCount);
    return delayMs === null
      ? { do: "give-up", why: `${why}, ${attemptCount} times` }
      : { do: "retry", delivery: { ...delivery, attemptCount, notBeforeMs: nowMs + delayMs } };
  };
  switch (outcome.kind) {
    case "answered": {
      const { status } = outcome;
      if (status >= 200 && status <= 299) return { do: "forget" };
      // Another attempt would fail with the same client error.
      const isFinal = status >= 400 && status <= 499 && status !== 429;
      return isFinal
        ? { do: "give-up", why: `the endpoint responded with status ${status}` }
        : again(`the endpoint responded with status ${status}`);
    }
    case "unreachable":
      return again(outcome.why);
    case "forbidden":
      return { do: "give-up", why: outcome.why };
    default:
      return unreachable(outcome);
  }
}
