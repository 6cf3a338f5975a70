/**
 * Kills a platform after each write of an operation on a topic, a subscription or a message. No published message may
 * be lost.
 */
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { silentLogger, systemClock, type Clock } from "@galatea/base";
import {
  MemoryDocuments,
  recordedTransitionsContract,
  type DocumentMemory,
  type RecordedTransition,
} from "@galatea/hosting/records/contracts";
import { deliveryLimits } from "./deliveries.ts";
import { topicLimits, type Topic } from "./topic.ts";
import { Topics } from "./topics.ts";

/** A clock that runs a thousand times faster: SNS's three retries within a minute take 60 ms. */
const beganMs = systemClock.epochMs();
const fast: Clock = {
  epochMs: () => beganMs + (systemClock.epochMs() - beganMs) * 1000,
  monotonicNs: () => systemClock.monotonicNs() * 1000,
  timer: (delayMs, fire) => systemClock.timer(delayMs / 1000, fire),
};
const arn = "arn:aws:sns:r:000000000000:told";
const topic: Topic = {
  arn,
  name: "told",
  accountId: "000000000000",
  createdMs: 0,
  displayName: "",
  signatureVersion: "1",
  deliveryPolicy: null,
  feedback: null,
};
const requested = {
  topicArn: arn,
  protocol: "http",
  endpoint: "http://receiver/",
  isRaw: true,
  filter: null,
  deliveryPolicy: null,
  accountId: topic.accountId,
} as const;

/** The requests that the endpoint received, and the statuses of its responses. */
interface ExternalState {
  readonly received: readonly string[];
  readonly statuses: readonly number[];
}

class CrashFixture implements AsyncDisposable {
  topics!: Topics;
  readonly received: string[];
  /** Statuses of the next responses. When the list is empty, the status is 200. */
  readonly statuses: number[];

  constructor({ received, statuses }: ExternalState) {
    this.received = [...received];
    this.statuses = [...statuses];
  }

  static async open(memory: DocumentMemory, outside: ExternalState | null): Promise<CrashFixture> {
    const fixture = new CrashFixture(outside ?? { received: [], statuses: [] });
    let count = 0;
    const newId = () => `00000000-0000-0000-0000-${String((count += 1)).padStart(12, "0")}`;
    fixture.topics = await Topics.open({
      documents: new MemoryDocuments(memory),
      limits: { ...topicLimits, ...deliveryLimits },
      send: (_url, { body }) => {
        const status = fixture.statuses.shift() ?? 200;
        if (status === 200) fixture.received.push(body.startsWith("{") ? "token" : body);
        return Promise.resolve({ kind: "answered", status });
      },
      links: { certificateUrl: "c", subscribeUrl: () => "s", unsubscribeUrl: () => "u" },
      sign: () => "signed",
      record: () => {},
      log: () => {},
      random: () => 0,
      newId,
      newToken: () => "token",
      clock: fast,
      logger: silentLogger,
    });
    return fixture;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.topics[Symbol.asyncDispose]();
  }
}

interface Found {
  readonly topics: string;
  readonly subscriptions: string;
  /**
   * Messages that the endpoint received, each at least once. A platform that is killed before it has recorded a
   * delivery sends the message again.
   */
  readonly received: string;
  /** The number of messages in delivery, and of undeliverable messages. */
  readonly messages: readonly [underWay: number, dead: number];
}

function found({ topics, received }: CrashFixture, { held }: DocumentMemory): Promise<Found> {
  const count = (of: string) => [...held.values()].filter(({ kind }) => kind === of).length;
  return Promise.resolve({
    topics: topics
      .list()
      .map(({ name, displayName }) => name + displayName)
      .join(),
    subscriptions: topics
      .subscriptions(null)
      .map(({ state, isRaw }) => `${state.at}${isRaw ? "" : " signed"}`)
      .join(),
    received: [...new Set(received)].join(),
    messages: [count("sns-delivery"), count("sns-dead-letter")],
  });
}

const none: Found = { topics: "", subscriptions: "", received: "", messages: [0, 0] };
const alone: Found = { ...none, topics: "told" };
const pending: Found = { ...alone, subscriptions: "pending", received: "token" };
const confirmed: Found = { ...pending, subscriptions: "confirmed" };

const create = (fixture: CrashFixture) => fixture.topics.create(topic);

async function subscribe(fixture: CrashFixture): Promise<void> {
  await create(fixture);
  await fixture.topics.subscribe(requested);
  await eventually(() => fixture.received.includes("token"));
}

const confirm = (fixture: CrashFixture) => fixture.topics.confirm(arn, "token", true);

async function joined(fixture: CrashFixture): Promise<void> {
  await subscribe(fixture);
  await confirm(fixture);
}

const only = (fixture: CrashFixture) => fixture.topics.subscriptions(arn)[0]?.arn ?? "";
const publish = (text: string) => (fixture: CrashFixture) =>
  fixture.topics.publish({ topicArn: arn, subject: null, text, attributes: {} });

const rows: readonly RecordedTransition<CrashFixture, Found>[] = [
  { what: "a topic is created", request: create, orElse: [none], end: alone, writesMin: 1 },
  {
    what: "a topic is changed",
    given: create,
    request: (fixture) => fixture.topics.change(arn, (each) => ({ ...each, displayName: " all" })),
    orElse: [alone],
    end: { ...alone, topics: "told all" },
    writesMin: 1,
  },
  {
    what: "a topic is deleted with its subscriptions",
    given: joined,
    request: (fixture) => fixture.topics.delete(arn),
    orElse: [confirmed],
    end: { ...none, received: "token" },
    writesMin: 1,
  },
  {
    what: "somebody subscribes",
    given: create,
    request: (fixture) => fixture.topics.subscribe(requested),
    orElse: [alone],
    end: pending,
    writesMin: 2,
  },
  { what: "somebody confirms", given: subscribe, request: confirm, orElse: [pending], end: confirmed, writesMin: 1 },
  {
    what: "a subscription is changed",
    given: joined,
    request: (fixture) => fixture.topics.changeSubscription(only(fixture), (each) => ({ ...each, isRaw: false })),
    orElse: [confirmed],
    end: { ...confirmed, subscriptions: "confirmed signed" },
    writesMin: 1,
  },
  {
    what: "somebody leaves",
    given: joined,
    request: (fixture) => fixture.topics.unsubscribe(only(fixture)),
    orElse: [confirmed],
    end: { ...alone, received: "token" },
    writesMin: 1,
  },
  {
    what: "a message is published",
    given: joined,
    request: publish("news"),
    orElse: [confirmed],
    end: { ...confirmed, received: "token,news" },
    writesMin: 2,
  },
  {
    what: "a receiver fails with 500 at first",
    given: joined,
    request(fixture) {
      fixture.statuses.push(500, 500);
      return publish("news")(fixture);
    },
    orElse: [confirmed],
    end: { ...confirmed, received: "token,news" },
    writesMin: 4,
  },
  {
    what: "a receiver rejects a message with 403",
    given: joined,
    request(fixture) {
      fixture.statuses.push(403, 403);
      return publish("news")(fixture);
    },
    orElse: [confirmed],
    end: { ...confirmed, messages: [0, 1] },
    writesMin: 2,
  },
];

recordedTransitionsContract<
  CrashFixture,
  ExternalState,
  Found,
  "create" | "change" | "delete" | "subscribe" | "confirm" | "amend" | "leave" | "publish" | "retry" | "give up"
>({
  name: "topic",
  kinds: null,
  open: (memory, outside) => CrashFixture.open(memory, outside),
  outside: ({ received, statuses }) => ({ received: [...received], statuses: [...statuses] }),
  settled: () => Promise.resolve(),
  found,
  steps: {
    create: ["a topic is created"],
    change: ["a topic is changed"],
    delete: ["a topic is deleted with its subscriptions"],
    subscribe: ["somebody subscribes"],
    confirm: ["somebody confirms"],
    amend: ["a subscription is changed"],
    leave: ["somebody leaves"],
    publish: ["a message is published"],
    retry: ["a receiver fails with 500 at first"],
    "give up": ["a receiver rejects a message with 403"],
  },
  rows,
});
