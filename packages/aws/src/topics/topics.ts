import { AwsError, KeyedLock, EventLoopQueue, type Clock, type Logger } from "@galatea/base";
import { readAllJson, type DocumentChange, type Documents } from "@galatea/hosting/records";
import { Deliveries, type DeliveryLimits, type SendMessage } from "./deliveries.ts";
import type { Delivery } from "./delivery.ts";
import { effectivePolicyText } from "./delivery-policy.ts";
import { FilteredMessage, evaluateFilter, type FilterPolicy, type FilterVerdict } from "./filter-policy.ts";
import {
  formatMessage,
  type MessageAttribute,
  type MessageLinks,
  type Sign,
  type TopicMessage,
} from "./message-format.ts";
import { deliveryStatus, type EndedDelivery, type StatusLine } from "./delivery-status.ts";
import { SubscriptionPolicies } from "./subscription-policies.ts";
import { filteredMetrics, type RecordTopicMetric } from "./topic-metrics.ts";
import {
  confirmationMs,
  invalidParameter,
  subscriptionNotFound,
  topicNotFound,
  type DeliveryProtocol,
  type FilterText,
  type Subscription,
  type Topic,
  type TopicLimits,
} from "./topic.ts";

export interface TopicsOptions {
  readonly documents: Documents;
  readonly limits: TopicLimits & DeliveryLimits;
  readonly send: SendMessage;
  readonly links: MessageLinks;
  readonly sign: Sign;
  readonly record: RecordTopicMetric;
  /** Writes a line to a log group. */
  readonly log: (line: StatusLine) => void;
  /** Returns a random number in [0, 1), which decides whether a delivery is logged. */
  readonly random: () => number;
  readonly newId: () => string;
  readonly newToken: () => string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A message to publish. */
export interface Publication {
  readonly topicArn: string;
  readonly subject: string | null;
  readonly text: string;
  readonly attributes: Readonly<Record<string, MessageAttribute>>;
}

const topicKind = "sns-topic";
const subscriptionKind = "sns-subscription";

/** Topics and subscriptions, in memory and as documents. The methods throw AwsError. */
export class Topics implements AsyncDisposable {
  readonly #options: TopicsOptions;
  readonly #topics = new Map<string, Topic>();
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #lock = new KeyedLock();
  readonly #policies = new SubscriptionPolicies();
  readonly #loopQueue = new EventLoopQueue();
  readonly #closing = new AbortController();
  #deliveries: Deliveries | null = null;

  private constructor(options: TopicsOptions) {
    this.#options = options;
  }

  static async open(options: TopicsOptions): Promise<Topics> {
    const topics = new Topics(options);
    const { documents } = options;
    for await (const { value: topic } of readAllJson<Topic>(documents, topicKind, options)) {
      topics.#topics.set(topic.arn, topic);
    }
    for await (const { value: each } of readAllJson<Subscription>(documents, subscriptionKind, options)) {
      topics.#subscriptions.set(each.arn, each);
    }
    topics.#deliveries = await Deliveries.open({
      ...options,
      prepare: (delivery) => topics.#written(delivery),
      receivesPerSecondMax: (arn) => topics.#receivesPerSecondMax(arn),
      onEnded: (ended) => topics.#ended(ended),
    });
    return topics;
  }

  /** Returns topics sorted by ARN. */
  list(): readonly Topic[] {
    return [...this.#topics.values()].toSorted((a, b) => (a.arn < b.arn ? -1 : 1));
  }

  find(arn: string): Topic | null {
    return this.#topics.get(arn) ?? null;
  }

  topic(arn: string): Topic {
    return this.find(arn) ?? raise(topicNotFound());
  }

  /** Returns the subscriptions of one topic or, for null, of all topics. Sorted by ARN. */
  subscriptions(topicArn: string | null): readonly Subscription[] {
    const nowMs = this.#options.clock.epochMs();
    return [...this.#subscriptions.values()]
      .filter((each) => (topicArn === null || each.topicArn === topicArn) && !isOver(each, nowMs))
      .toSorted((a, b) => (a.arn < b.arn ? -1 : 1));
  }

  subscription(arn: string): Subscription {
    return this.#subscriptions.get(arn) ?? raise(subscriptionNotFound());
  }

  /** Creates a topic. An existing topic with the ARN stays unchanged. */
  async create(topic: Topic): Promise<void> {
    await this.#lock.run("", async () => {
      if (this.#topics.has(topic.arn)) return;
      if (this.#topics.size >= this.#options.limits.topicsMax) {
        throw new AwsError("TopicLimitExceeded", `There are ${this.#topics.size} topics, which is the maximum.`, {
          statusFallback: 403,
        });
      }
      await this.#write([put(topicKind, topic)]);
      this.#topics.set(topic.arn, topic);
    });
  }

  async change(arn: string, change: (topic: Topic) => Topic): Promise<void> {
    await this.#lock.run("", async () => {
      const changed = change(this.topic(arn));
      await this.#write([put(topicKind, changed)]);
      this.#topics.set(arn, changed);
    });
  }

  /** Deletes a topic with its subscriptions, and cancels their deliveries. Succeeds for an unknown topic. */
  async delete(arn: string): Promise<void> {
    await this.#lock.run("", async () => {
      const removed = [...this.#subscriptions.values()].filter((each) => each.topicArn === arn);
      if (!this.#topics.has(arn) && removed.length === 0) return;
      await this.#write([remove(topicKind, arn), ...removed.map((each) => remove(subscriptionKind, each.arn))]);
      this.#topics.delete(arn);
      for (const each of removed) this.#subscriptions.delete(each.arn);
    });
  }

  /**
   * Subscribes an endpoint, which receives a token to confirm the subscription. Returns the endpoint's existing
   * subscription if there is one.
   */
  async subscribe(requested: {
    readonly topicArn: string;
    readonly protocol: DeliveryProtocol;
    readonly endpoint: string;
    readonly isRaw: boolean;
    readonly filter: FilterText | null;
    readonly deliveryPolicy: string | null;
    readonly accountId: string;
  }): Promise<Subscription> {
    return await this.#lock.run("", async () => {
      const { newId, newToken, clock, limits } = this.#options;
      this.topic(requested.topicArn);
      const nowMs = clock.epochMs();
      const over = [...this.#subscriptions.values()].filter((each) => isOver(each, nowMs));
      const all = this.subscriptions(requested.topicArn);
      const same = all.find(
        ({ protocol, endpoint }) => protocol === requested.protocol && endpoint === requested.endpoint,
      );
      if (same?.state.at === "confirmed") {
        if (isSame(same, requested)) return same;
        throw invalidParameter("Attributes Reason: Subscription already exists with different attributes");
      }
      if (
        same === undefined &&
        (all.length >= limits.perTopicMax || this.#subscriptions.size - over.length >= limits.subscriptionsMax)
      ) {
        throw new AwsError("SubscriptionLimitExceeded", "The maximum number of subscriptions is reached.", {
          statusFallback: 403,
        });
      }
      const token = newToken();
      const untilMs = nowMs + confirmationMs;
      const arn = same?.arn ?? `${requested.topicArn}:${newId()}`;
      const subscription: Subscription = { ...requested, arn, state: { at: "pending", token, untilMs } };
      const { topicArn } = requested;
      const text =
        `You have chosen to subscribe to the topic ${topicArn}.\n` +
        "To confirm the subscription, visit the SubscribeURL included in this message.";
      const posted = this.#post([subscription], {
        type: "SubscriptionConfirmation",
        messageId: newId(),
        topicArn,
        text,
        timestampMs: nowMs,
        token,
      });
      await this.#write([
        put(subscriptionKind, subscription),
        ...over.map((each) => remove(subscriptionKind, each.arn)),
        ...posted.changes,
      ]);
      for (const each of over) this.#subscriptions.delete(each.arn);
      this.#subscriptions.set(arn, subscription);
      posted.written();
      return subscription;
    });
  }

  /** Confirms a subscription with the token that the endpoint received. */
  async confirm(topicArn: string, token: string, mayLeaveByLink: boolean): Promise<Subscription> {
    return await this.#lock.run("", async () => {
      this.topic(topicArn);
      const nowMs = this.#options.clock.epochMs();
      const found = this.subscriptions(topicArn).find(({ state }) => state.at === "pending" && state.token === token);
      if (found === undefined || isOver(found, nowMs)) throw invalidParameter("Token");
      const confirmed: Subscription = { ...found, state: { at: "confirmed", mayLeaveByLink } };
      await this.#write([put(subscriptionKind, confirmed)]);
      this.#subscriptions.set(confirmed.arn, confirmed);
      return confirmed;
    });
  }

  async changeSubscription(arn: string, change: (subscription: Subscription) => Subscription): Promise<void> {
    await this.#lock.run("", async () => {
      const changed = change(this.subscription(arn));
      await this.#write([put(subscriptionKind, changed)]);
      this.#subscriptions.set(arn, changed);
    });
  }

  /** Deletes a subscription. Succeeds for an unknown one. */
  async unsubscribe(arn: string): Promise<void> {
    await this.#lock.run("", async () => {
      if (!this.#subscriptions.has(arn)) return;
      await this.#write([remove(subscriptionKind, arn)]);
      this.#subscriptions.delete(arn);
    });
  }

  /**
   * Publishes a message. Resolves with its id once the message is stored for all confirmed subscriptions; does not wait
   * for deliveries.
   */
  async publish(publication: Publication): Promise<string> {
    const prepared = (await this.prepare(publication)) ?? raise(topicNotFound());
    if (prepared.changes.length > 0) await this.#write(prepared.changes);
    prepared.written();
    return prepared.messageId;
  }

  /**
   * Prepares a publication that the caller commits together with other changes. Resolves with null for an unknown
   * topic.
   */
  async prepare({ topicArn, subject, text, attributes }: Publication) {
    if (this.find(topicArn) === null) return null;
    const { newId, clock } = this.#options;
    const messageId = newId();
    const confirmed = this.subscriptions(topicArn).filter(({ state }) => state.at === "confirmed");
    const timestampMs = clock.epochMs();
    const message = { type: "Notification", messageId, topicArn, subject, text, timestampMs, attributes } as const;
    const { meant, filteredOut } = await this.#filtered(confirmed, message);
    const posted = this.#post(meant, message);
    const written = () => {
      posted.written();
      const { record } = this.#options;
      record(topicArn, "NumberOfMessagesPublished", 1);
      record(topicArn, "PublishSize", Buffer.byteLength(text));
      for (const verdict of filteredOut) {
        record(topicArn, "NumberOfNotificationsFilteredOut", 1);
        record(topicArn, filteredMetrics[verdict], 1);
      }
    };
    return { changes: posted.changes, written, messageId };
  }

  /** Returns the effective retries and rate limit of a topic or a subscription, as SNS shows them. */
  effectivePolicy(of: Topic | Subscription): string {
    if ("topicArn" in of) {
      const own = this.#policies.ofSubscription(this.topic(of.topicArn), of);
      return effectivePolicyText(own, "subscription", { mayBeOverridden: true });
    }
    const { policy, mayBeOverridden } = this.#policies.ofTopic(of);
    return effectivePolicyText(policy, "topic", { mayBeOverridden });
  }

  /**
   * Returns the subscriptions whose filter accepts a message. Publishers and subscribers choose the amount of work, so
   * this yields to the event loop.
   */
  async #filtered(confirmed: readonly Subscription[], message: Publication) {
    const meant: Subscription[] = [];
    const filteredOut: (keyof typeof filteredMetrics)[] = [];
    const looked = new FilteredMessage(message);
    for (const subscription of confirmed) {
      const filter = this.#policies.filter(subscription);
      if (filter?.scope === "MessageBody" && message.text.length > longTextChars) {
        await this.#loopQueue.next(this.#closing.signal);
      }
      const verdict = filter === null ? "passes" : await this.#verdict(filter, looked);
      if (verdict === "passes") meant.push(subscription);
      else filteredOut.push(verdict);
    }
    return { meant, filteredOut };
  }

  async #verdict(filter: FilterPolicy, message: FilteredMessage): Promise<FilterVerdict> {
    const looking = evaluateFilter(filter, message);
    for (;;) {
      const chunk = looking.next();
      if (chunk.done === true) return chunk.value;
      await this.#loopQueue.next(this.#closing.signal);
    }
  }

  #ended(ended: EndedDelivery): void {
    const { clock, random, log } = this.#options;
    const topic = this.find(ended.delivery.message.topicArn);
    const at = { nowMs: clock.epochMs(), chance: random() };
    const line = topic === null ? null : deliveryStatus(topic, ended, at);
    if (line !== null) log(line);
  }

  #receivesPerSecondMax(arn: string): number | null {
    const subscription = this.#subscriptions.get(arn);
    const topic = subscription === undefined ? null : this.find(subscription.topicArn);
    if (subscription === undefined || topic === null) return null;
    return this.#policies.ofSubscription(topic, subscription).receivesPerSecondMax;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the platform ends"));
    await this.#deliveries?.[Symbol.asyncDispose]();
  }

  #post(subscriptions: readonly Subscription[], message: TopicMessage) {
    return this.#deliveries?.enqueue(subscriptions, message) ?? raise(new Error("bug: topics that are not open"));
  }

  /**
   * Returns the message in the format of its subscription. Returns null if the subscription or the topic was deleted,
   * or if the message asks to confirm an older token.
   */
  #written({ subscriptionArn, message }: Delivery) {
    const subscription = this.#subscriptions.get(subscriptionArn);
    const topic = this.find(message.topicArn);
    if (subscription === undefined || topic === null) return null;
    const { state, isRaw, endpoint } = subscription;
    // A confirmation is valid only for the current token.
    if (message.type === "Notification" ? state.at !== "confirmed" : !isAskedFor(state, message.token)) return null;
    const { links, sign } = this.#options;
    const version = topic.signatureVersion;
    const policy = this.#policies.ofSubscription(topic, subscription);
    const writing = { subscriptionArn, version, links, sign, isRaw, contentType: policy.contentType };
    return { endpoint, message: formatMessage(message, writing), policy };
  }

  async #write(changes: readonly DocumentChange[]): Promise<void> {
    await this.#options.documents.write(changes);
  }
}

/** Length of a message's text above which each filter runs in an event loop tick of its own. */
const longTextChars = 16_384;

type Terms = Pick<Subscription, "isRaw" | "filter" | "deliveryPolicy">;

const isSame = (a: Terms, b: Terms) =>
  a.isRaw === b.isRaw &&
  a.deliveryPolicy === b.deliveryPolicy &&
  a.filter?.policy === b.filter?.policy &&
  a.filter?.scope === b.filter?.scope;

const isAskedFor = (state: Subscription["state"], token: string) => state.at === "pending" && state.token === token;

const isOver = ({ state }: Subscription, nowMs: number) => state.at === "pending" && state.untilMs <= nowMs;

const put = (kind: string, value: { readonly arn: string }): DocumentChange => {
  return { do: "put", kind, key: value.arn, body: JSON.stringify(value), expects: "any" };
};

const remove = (kind: string, key: string): DocumentChange => ({ do: "delete", kind, key, expects: "any" });

function raise(error: Error): never {
  throw error;
}
