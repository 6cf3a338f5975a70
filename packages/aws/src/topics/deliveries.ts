import {
  openDeadline,
  rejectOnAbort,
  retryWrite,
  ChangeNotifier,
  TaskGroup,
  type Clock,
  type Logger,
} from "@galatea/base";
import { readAllDocuments, readAllJson, readJson, type DocumentChange, type Documents } from "@galatea/hosting/records";
import { decideAfterAttempt, type AttemptOutcome, type Delivery } from "./delivery.ts";
import type { DeliveryPolicy } from "./delivery-policy.ts";
import type { EndedDelivery } from "./delivery-status.ts";
import type { TopicMessage, FormattedMessage } from "./message-format.ts";
import type { RecordTopicMetric } from "./topic-metrics.ts";
import type { Subscription } from "./topic.ts";

/** Sends a message with one HTTP request, and reads only the status of the response. Rejects only for bugs. */
export type SendMessage = (url: string, message: FormattedMessage, signal: AbortSignal) => Promise<AttemptOutcome>;

export interface DeliveryLimits {
  /** Maximum number of messages that wait for one subscription. Further messages are discarded. */
  readonly waitingMax: number;
  readonly waitingBytesMax: number;
  /** Maximum number of concurrent requests to one subscription. */
  readonly sendingEachMax: number;
  /** Maximum number of concurrent requests to all subscriptions together. */
  readonly sendingMax: number;
  readonly attemptMs: number;
  /** Interval of the check for due messages, in milliseconds. */
  readonly checkIntervalMs: number;
  /** Maximum number of undeliverable messages that are stored. */
  readonly undeliveredMax: number;
}

export const deliveryLimits: DeliveryLimits = {
  waitingMax: 10_000,
  waitingBytesMax: 64 * 2 ** 20,
  sendingEachMax: 2,
  sendingMax: 64,
  attemptMs: 15_000,
  checkIntervalMs: 1000,
  undeliveredMax: 1000,
};

export interface DeliveriesOptions {
  readonly documents: Documents;
  readonly limits: DeliveryLimits;
  readonly send: SendMessage;
  /** Formats a message. Returns null if its subscription was deleted or does not receive this message. */
  readonly prepare: (delivery: Delivery) => ReadyDelivery | null;
  /** Returns the rate limit of a subscription; null if it has none. */
  readonly receivesPerSecondMax: (subscriptionArn: string) => number | null;
  readonly record: RecordTopicMetric;
  readonly onEnded: (ended: EndedDelivery) => void;
  readonly newId: () => string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A message that is ready to send, with the URL and delivery policy of its subscription. */
interface ReadyDelivery {
  readonly endpoint: string;
  readonly message: FormattedMessage;
  readonly policy: DeliveryPolicy;
}

interface WaitingDelivery {
  readonly key: string;
  readonly bytes: number;
  notBeforeMs: number;
}

interface Line {
  readonly waiting: Map<string, WaitingDelivery>;
  bytes: number;
  sendingCount: number;
  /** Time of the next message in epoch milliseconds, for a subscription with a rate limit. */
  nextMs: number;
}

const kind = "sns-delivery";
const deadKind = "sns-dead-letter";
/** Number of documents per read. Each contains a message of up to 256 KiB. */
const readAtOnce = 200;

/**
 * Delivers messages. Each message is stored as a document until the endpoint has accepted it or no retries are left.
 * Publishers never wait for a delivery.
 */
export class Deliveries implements AsyncDisposable {
  readonly #options: DeliveriesOptions;
  /** Queues by subscription ARN, in round-robin order. */
  readonly #lines = new Map<string, Line>();
  readonly #tasks: TaskGroup;
  readonly #posted = new ChangeNotifier();
  /** Keys of the stored undeliverable messages, oldest first. */
  readonly #undelivered = new Set<string>();
  #sendingCount = 0;
  #postedCount = 0;

  private constructor(options: DeliveriesOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) =>
      options.logger.error("a delivery ended unexpectedly", { error: String(error) }),
    );
  }

  static async open(options: DeliveriesOptions): Promise<Deliveries> {
    const deliveries = new Deliveries(options);
    const { documents, logger } = options;
    for await (const { key, body, value } of readAllJson<Delivery>(documents, kind, { logger, readAtOnce })) {
      deliveries.#enter(key, value, Buffer.byteLength(body));
    }
    for await (const { key } of readAllDocuments(documents, deadKind, readAtOnce)) deliveries.#undelivered.add(key);
    deliveries.#tasks.run((closing) => deliveries.#watch(closing));
    return deliveries;
  }

  /**
   * Returns the document changes that queue a message for each of the subscriptions. The caller calls `written` once
   * they are committed.
   */
  enqueue(subscriptions: readonly Subscription[], message: TopicMessage) {
    const { clock, limits, newId, logger } = this.#options;
    const nowMs = clock.epochMs();
    const changes: DocumentChange[] = [];
    const entered: (() => void)[] = [];
    for (const { arn, endpoint } of subscriptions) {
      const delivery: Delivery = { subscriptionArn: arn, message, attemptCount: 0, notBeforeMs: nowMs };
      const body = JSON.stringify(delivery);
      const bytes = Buffer.byteLength(body);
      const key = `${String(nowMs).padStart(15, "0")} ${String((this.#postedCount += 1)).padStart(12, "0")} ${newId()}`;
      const line = this.#lines.get(arn);
      const isFull =
        line !== undefined && (line.waiting.size >= limits.waitingMax || line.bytes + bytes > limits.waitingBytesMax);
      if (isFull) {
        const { messageId, topicArn } = message;
        logger.warning("a message is dropped: too many are waiting for its endpoint", {
          messageId,
          subscription: arn,
        });
        const buried = this.#keepUndelivered(key, body);
        changes.push(...buried.changes);
        entered.push(() => {
          buried.written();
          this.#options.record(topicArn, "NumberOfNotificationsFailed", 1);
          const why = "too many messages are waiting for the endpoint";
          this.#options.onEnded({ delivery, endpoint, isDelivered: false, outcome: null, why });
        });
        continue;
      }
      changes.push({ do: "put", kind, key, body, expects: "absent" });
      entered.push(() => this.#enter(key, delivery, bytes));
    }
    const written = () => {
      for (const enter of entered) enter();
      this.#posted.notify();
    };
    return { changes, written };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
  }

  #enter(key: string, { subscriptionArn, notBeforeMs }: Delivery, bytes: number): void {
    let line = this.#lines.get(subscriptionArn);
    if (line === undefined)
      this.#lines.set(subscriptionArn, (line = { waiting: new Map(), bytes: 0, sendingCount: 0, nextMs: 0 }));
    line.waiting.set(key, { key, bytes, notBeforeMs });
    line.bytes += bytes;
  }

  async #watch(closing: AbortSignal): Promise<void> {
    const { clock, limits } = this.#options;
    for (;;) {
      const posted = this.#posted.nextChange();
      const afterMs = Math.min(limits.checkIntervalMs, Math.max(1, this.#dispatch() - clock.epochMs()));
      using pause = openDeadline({ clock, afterMs, signal: closing });
      await rejectOnAbort(posted, pause.signal).catch(() => closing.throwIfAborted());
    }
  }

  /**
   * Sends one message of each subscription in round-robin order while slots are free. Returns the time at which the
   * next message of a rate-limited subscription is due.
   */
  #dispatch(): number {
    const { limits, clock, receivesPerSecondMax } = this.#options;
    const nowMs = clock.epochMs();
    let nextMs = Infinity;
    for (let isStarted = true; isStarted;) {
      isStarted = false;
      // Iterates over a copy. A subscription moves to the end of the map when it is served, and must not be served
      // twice in one round.
      for (const [arn, line] of Array.from(this.#lines)) {
        if (this.#sendingCount >= limits.sendingMax) return nextMs;
        if (line.waiting.size === 0 && line.sendingCount === 0 && line.nextMs <= nowMs) this.#lines.delete(arn);
        if (line.sendingCount >= limits.sendingEachMax) continue;
        const due = line.waiting.values().find(({ notBeforeMs }) => notBeforeMs <= nowMs);
        if (due === undefined) continue;
        if (line.nextMs > nowMs) {
          nextMs = Math.min(nextMs, line.nextMs);
          continue;
        }
        const mostPerSecond = receivesPerSecondMax(arn);
        if (mostPerSecond !== null) line.nextMs = nowMs + 1000 / mostPerSecond;
        this.#lines.delete(arn);
        this.#lines.set(arn, line);
        isStarted = true;
        this.#begin(line, due);
      }
    }
    return nextMs;
  }

  #begin(line: Line, entry: WaitingDelivery): void {
    line.waiting.delete(entry.key);
    line.sendingCount += 1;
    this.#sendingCount += 1;
    this.#tasks.run(async (closing) => {
      try {
        const again = await this.#deliver(entry.key, closing).catch((error: unknown) => {
          closing.throwIfAborted();
          this.#options.logger.error("a delivery failed; it will be retried", { error: String(error) });
          return this.#options.clock.epochMs() + this.#options.limits.attemptMs;
        });
        if (again === null) line.bytes -= entry.bytes;
        else line.waiting.set(entry.key, { ...entry, notBeforeMs: again });
      } finally {
        line.sendingCount -= 1;
        this.#sendingCount -= 1;
        if (!closing.aborted) this.#posted.notify();
      }
    });
  }

  /** Attempts one delivery. Resolves with the time of the next attempt; null if the delivery has ended. */
  async #deliver(key: string, closing: AbortSignal): Promise<number | null> {
    const { documents, clock, prepare: written, limits, send, record, onEnded: ended, logger } = this.#options;
    const found = await documents.get(kind, key);
    const delivery = found === null ? null : (readJson(found, logger) as Delivery | null);
    if (delivery === null) return null;
    const ready = written(delivery);
    if (ready === null) {
      await this.#persist(delivery, [{ do: "delete", kind, key, expects: "any" }], closing);
      return null;
    }
    using limit = openDeadline({ clock, afterMs: limits.attemptMs, signal: closing });
    const outcome = await send(ready.endpoint, ready.message, limit.signal);
    closing.throwIfAborted();
    const { retries } = ready.policy;
    const decision = decideAfterAttempt(delivery, outcome, { retries, nowMs: clock.epochMs() });
    const { messageId, topicArn } = delivery.message;
    if (decision.do === "retry") {
      const body = JSON.stringify(decision.delivery);
      await this.#persist(delivery, [{ do: "put", kind, key, body, expects: "any" }], closing);
      return decision.delivery.notBeforeMs;
    }
    const removed: DocumentChange = { do: "delete", kind, key, expects: "any" };
    if (decision.do === "forget") await this.#persist(delivery, [removed], closing);
    else {
      logger.warning("a message could not be delivered", {
        messageId,
        subscription: delivery.subscriptionArn,
        why: decision.why,
      });
      const buried = this.#keepUndelivered(key, JSON.stringify({ ...delivery, why: decision.why }));
      await this.#persist(delivery, [removed, ...buried.changes], closing);
      buried.written();
    }
    const isDelivered = decision.do === "forget";
    ended({ delivery, endpoint: ready.endpoint, isDelivered, outcome, why: isDelivered ? null : decision.why });
    record(topicArn, decision.do === "forget" ? "NumberOfNotificationsDelivered" : "NumberOfNotificationsFailed", 1);
    return null;
  }

  /**
   * Stores an undeliverable message, and removes the oldest ones above the limit. The caller calls `written` once the
   * changes are committed.
   */
  #keepUndelivered(key: string, body: string) {
    const surplusCount = Math.max(0, this.#undelivered.size + 1 - this.#options.limits.undeliveredMax);
    const surplus = [...this.#undelivered.values().take(surplusCount)];
    const changes: readonly DocumentChange[] = [
      { do: "put", kind: deadKind, key, body, expects: "any" },
      ...surplus.map((oldest): DocumentChange => ({ do: "delete", kind: deadKind, key: oldest, expects: "any" })),
    ];
    const written = () => {
      for (const oldest of surplus) this.#undelivered.delete(oldest);
      this.#undelivered.add(key);
    };
    return { changes, written };
  }

  /**
   * Repeats a write until it succeeds. Otherwise a message that was delivered while the disk was full would be
   * delivered again.
   */
  async #persist(
    { subscriptionArn: ownerName }: Delivery,
    changes: readonly DocumentChange[],
    signal: AbortSignal,
  ): Promise<void> {
    const { documents, clock, logger } = this.#options;
    const recordDescription = "the result of a delivery";
    const options = { clock, logger, recordDescription, ownerName, retries: "every error", signal } as const;
    await retryWrite(() => documents.write(changes), options);
  }
}
