/** The book of subscriptions on a clock that is moved. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "../base/index.ts";
import { MovedClock } from "../base/moved-clock-fixture.ts";
import { DocumentMemory, MemoryDocuments } from "../records/contracts/index.ts";
import { deliveryLimits, topicLimits, Topics } from "./index.ts";

const accountId = "000000000000";
const topicArn = `arn:aws:sns:r:${accountId}:told`;
const asked = { topicArn, protocol: "http", isRaw: true, filter: null, deliveryPolicy: null, accountId } as const;

async function opened(clock: MovedClock, limits: Partial<typeof topicLimits>): Promise<Topics> {
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

test("subscriptions that nobody confirmed in time leave their places to others", async () => {
  const clock = new MovedClock();
  await using topics = await opened(clock, { subscriptionsMax: 2 });
  const subscribe = (host: string) => topics.subscribe({ ...asked, endpoint: `http://${host}/` });
  await subscribe("a");
  await subscribe("b");
  await assert.rejects(subscribe("c"), { code: "SubscriptionLimitExceeded" });
  clock.move(3 * 86_400_000);
  await subscribe("c");
  assert.deepEqual(
    topics.subscriptions(null).map(({ endpoint }) => endpoint),
    ["http://c/"],
  );
});
