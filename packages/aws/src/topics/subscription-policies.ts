import {
  defaultDeliveryPolicy,
  parseDeliveryPolicy,
  mergeDeliveryPolicy,
  type DeliveryPolicy,
  type PartialDeliveryPolicy,
} from "./delivery-policy.ts";
import { parseFilterPolicy, type FilterPolicy } from "./filter-policy.ts";
import type { Subscription, Topic } from "./topic.ts";

/** The parsed policies of topics and subscriptions. Each policy is parsed once. */
export class SubscriptionPolicies {
  readonly #filters = new WeakMap<Subscription, FilterPolicy>();
  readonly #policies = new WeakMap<Topic | Subscription, PartialDeliveryPolicy>();

  /** Returns a subscription's filter policy; null for a subscription that receives every message. */
  filter(subscription: Subscription): FilterPolicy | null {
    if (subscription.filter === null || subscription.filter.policy === "") return null;
    const found = this.#filters.get(subscription);
    if (found !== undefined) return found;
    const parsed = parseFilterPolicy(subscription.filter);
    this.#filters.set(subscription, parsed);
    return parsed;
  }

  ofTopic(topic: Topic): { readonly policy: DeliveryPolicy; readonly mayBeOverridden: boolean } {
    const said = this.#policiesOf(topic, "topic");
    if (said === null) return { policy: defaultDeliveryPolicy, mayBeOverridden: true };
    return { policy: mergeDeliveryPolicy(defaultDeliveryPolicy, said), mayBeOverridden: said.mayBeOverridden };
  }

  /**
   * Returns a subscription's effective policy. Its own settings override those of its topic, if the topic allows it.
   */
  ofSubscription(topic: Topic, subscription: Subscription): DeliveryPolicy {
    const { policy, mayBeOverridden } = this.ofTopic(topic);
    const said = mayBeOverridden ? this.#policiesOf(subscription, "subscription") : null;
    return said === null ? policy : mergeDeliveryPolicy(policy, said);
  }

  #policiesOf(by: Topic | Subscription, level: "topic" | "subscription"): PartialDeliveryPolicy | null {
    if (by.deliveryPolicy === null) return null;
    const found = this.#policies.get(by);
    if (found !== undefined) return found;
    const parsed = parseDeliveryPolicy(by.deliveryPolicy, level);
    this.#policies.set(by, parsed);
    return parsed;
  }
}
