/** Tests topics and subscriptions with a clock that the tests advance. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@galatea/base";
import { SteppedClock } from "@galatea/base/core/stepped-clock-fixture.ts";
import { DocumentMemory, MemoryDocuments } from "@galatea/hosting/records/contracts";
import type { DocumentChange } from "@galatea/hosting/records";
import { deliveryLimits } from "./deliveries.ts";
import { topicLimits } from "./topic.ts";
import { Topics, type TopicsOptions } from "./topics.ts";

const accountId = "000000000000";
const topicArn = `arn:aws:sns:r:${accountId}:told`;
const requested = { topicArn, protocol: "http", isRaw: true, filter: null, deliveryPolicy: null, accountId } as const;

type Given = Partial<Pick<TopicsOptions, "documents" | "send">> & { readonly limits: Partial<TopicsOptions["limits"]> };

async function opened(clock: SteppedClock, { limits, ...input }: Given): Promise<Topics> {
  let count = 0;
  const topics = await Topics.open({
    documents: new MemoryDocuments(new DocumentMemory()),
    limits: { ...topicLimits, ...deliveryLimits, ...limits },
    send: () => Promise.resolve({ kind: "answered", status: 200 }),
    links: { certificateUrl: "c", subscribeUrl: () => "s", unsubscribeUrl: () => "u" },
    sign: () => "signed",
    record: () => {},
    log: () => {},
    random: () => 0,
    newId: () => `00000000-0000-0000-0000-${String((count += 1)).padStart(12, "0")}`,
    newToken: () => `token ${count}`,
    clock,
    logger: silentLogger,
    ...input,
  });
  await topics.create({
    arn: topicArn,
    name: "told",
    accountId,
    createdMs: 0,
    displayName: "",
    signatureVersion: "1",
    deliveryPolicy: null,
    feedback: null,
  });
  return topics;
}

test("subscriptions that are not confirmed in time no longer count against the limit", async () => {
  const clock = new SteppedClock();
  await using topics = await opened(clock, { limits: { subscriptionsMax: 2 } });
  const subscribe = (host: string) => topics.subscribe({ ...requested, endpoint: `http://${host}/` });
  await subscribe("a");
  await subscribe("b");
  await assert.rejects(subscribe("c"), { code: "SubscriptionLimitExceeded" });
  clock.advance(3 * 86_400_000);
  await subscribe("c");
  assert.deepEqual(
    topics.subscriptions(null).map(({ endpoint }) => endpoint),
    ["http://c/"],
  );
});

test("messages dropped while the disk is full evict no stored message", async () => {
  const memory = new DocumentMemory();
  let isFull = false;
  const documents = new (class extends MemoryDocuments {
    override async write(changes: readonly DocumentChange[]): Promise<number> {
      if (isFull) throw new Error("the disk is full");
      return super.write(changes);
    }
  })(memory);
  // An endpoint that never responds, so that the queue stays full and each further message is discarded.
  const send: TopicsOptions["send"] = (_url, _message, signal) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
  await using topics = await opened(new SteppedClock(), {
    documents,
    send,
    limits: { waitingMax: 0, undeliveredMax: 2 },
  });
  const { state } = await topics.subscribe({ ...requested, endpoint: "http://a/" });
  await topics.confirm(topicArn, state.at === "pending" ? state.token : "", true);
  const publish = (text: string) => topics.publish({ topicArn, subject: null, text, attributes: {} });
  const dead = () =>
    [...memory.held.values()]
      .filter(({ kind }) => kind === "sns-dead-letter")
      .map(({ body }) => (JSON.parse(body) as { message: { text: string } }).message.text)
      .toSorted();
  for (const text of ["a", "b", "c"]) await publish(text);
  assert.deepEqual(dead(), ["b", "c"]);
  isFull = true;
  for (const text of ["d", "e"]) await assert.rejects(publish(text), /the disk is full/);
  isFull = false;
  for (const text of ["f", "g"]) await publish(text);
  assert.deepEqual(dead(), ["f", "g"]);
});
