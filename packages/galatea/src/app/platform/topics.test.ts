/** Tests topics over real HTTP requests: contents, times and retries of deliveries. */
import assert from "node:assert/strict";
import { createHash, createVerify, X509Certificate } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { silentLogger, systemClock, type Clock } from "@galatea/base";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { InMemoryMetricStore } from "@galatea/base/metrics";
import { DocumentMemory, MemoryDocuments } from "@galatea/hosting/records/contracts";
import type { Topics } from "@galatea/aws/topics";
import { loadedTopics } from "./loaded-topics.ts";
import type { TopicPages } from "@galatea/aws/topic-delivery";

/** A clock that runs 100 times faster, so that SNS's retry interval of 20 s takes 0.2 s. */
const beganMs = systemClock.epochMs();
const fast: Clock = {
  epochMs: () => beganMs + (systemClock.epochMs() - beganMs) * 100,
  monotonicNs: () => systemClock.monotonicNs() * 100,
  timer: (delayMs, fire) => systemClock.timer(delayMs / 100, fire),
};

const account = "000000000000";
const arn = `arn:aws:sns:us-east-1:${account}:told`;
const topic = {
  arn,
  name: "told",
  accountId: account,
  createdMs: 0,
  displayName: "",
  signatureVersion: "1",
  deliveryPolicy: null,
  feedback: null,
} as const;

/** A subscription without a filter, a delivery policy or raw delivery. */
const plain = {
  topicArn: arn,
  protocol: "http",
  isRaw: false,
  filter: null,
  deliveryPolicy: null,
  accountId: account,
} as const;

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/**
 * Starts an HTTP endpoint that responds with each of `statuses` in order, then with 200. For the status 0, it does not
 * respond.
 */
async function receiver(t: TestContext, statuses: number[] = []) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      received.push({ headers: request.headers, body });
      const status = statuses.shift() ?? 200;
      if (status !== 0) response.writeHead(status).end("ignored");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, received };
}

interface Bench {
  readonly logged: readonly { readonly group: string; readonly stream: string; readonly text: string }[];
  readonly topics: Topics;
  readonly pages: TopicPages;
  readonly series: InMemoryMetricStore;
}

async function open(
  t: TestContext,
  {
    documents = new DocumentMemory(),
    directory,
    toThisMachine = true,
    toPrivateNetworks = false,
    clock = systemClock,
  }: {
    documents?: DocumentMemory;
    directory?: string;
    toThisMachine?: boolean;
    toPrivateNetworks?: boolean;
    clock?: Clock;
  } = {},
): Promise<Bench & AsyncDisposable> {
  const own = directory ?? (await mkdtemp(join(tmpdir(), "gal-topics-")));
  if (directory === undefined) t.after(() => rm(own, { recursive: true, force: true }));
  const series = new InMemoryMetricStore({ clock, seriesMax: 100, bytesMax: 1e6 });
  const logged: { group: string; stream: string; text: string }[] = [];
  const opened = await loadedTopics({
    documents: new MemoryDocuments(documents),
    series,
    directory: own,
    url: "http://platform.test:1",
    toThisMachine,
    toPrivateNetworks,
    openLog: (group, stream) => (chunk) => void logged.push({ group, stream, text: String(chunk) }),
    clock,
    logger: silentLogger,
  });
  return { ...opened, series, logged };
}

type Terms = Partial<Pick<Parameters<Topics["subscribe"]>[0], "isRaw" | "filter" | "deliveryPolicy">>;

async function subscribed({ topics, pages }: Bench, hook: { url: string; received: Received[] }, terms: Terms = {}) {
  await topics.create(topic);
  await topics.subscribe({ ...plain, ...terms, endpoint: hook.url });
  await eventually(() => hook.received.length === 1);
  const requested = JSON.parse(hook.received[0]?.body ?? "") as Record<string, string>;
  await pages((requested["SubscribeURL"] ?? "").replace("http://platform.test:1", ""));
  return requested;
}

/** Verifies a message as documented for receivers of SNS messages. */
async function verified({ pages }: Bench, message: Record<string, string>): Promise<boolean> {
  const certificate = await pages((message["SigningCertURL"] ?? "").replace("http://platform.test:1", ""));
  const names = ["Message", "MessageId", "Subject", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"];
  const signed = names.filter((name) => message[name] !== undefined).map((name) => `${name}\n${message[name]}\n`);
  const verify = createVerify(message["SignatureVersion"] === "2" ? "RSA-SHA256" : "RSA-SHA1").update(signed.join(""));
  const { publicKey } = new X509Certificate(certificate?.text ?? "");
  return verify.verify(publicKey, message["Signature"] ?? "", "base64");
}

test("an SNS endpoint confirms by the URL that it was sent, and then receives signed messages", async (t) => {
  const hook = await receiver(t);
  await using bench = await open(t);
  const requested = await subscribed(bench, hook);
  assert.equal(requested["Type"], "SubscriptionConfirmation");
  assert.ok(await verified(bench, requested));
  for (const signatureVersion of ["1", "2"] as const) {
    await bench.topics.change(arn, (before) => ({ ...before, signatureVersion }));
    const attributes = { kind: { Type: "String", Value: "x" } };
    const messageId = await bench.topics.publish({ topicArn: arn, subject: "Hear", text: "it's\nä", attributes });
    await eventually(() => hook.received.length === Number(signatureVersion) + 1);
    const { headers, body } = hook.received.at(-1) ?? { headers: {}, body: "" };
    const message = JSON.parse(body) as Record<string, string>;
    assert.ok(await verified(bench, message));
    assert.equal(await verified(bench, { ...message, Message: "another" }), false);
    const { Type, MessageId, TopicArn, Subject, Message, SignatureVersion, UnsubscribeURL, MessageAttributes } =
      message;
    assert.deepEqual(
      { Type, MessageId, TopicArn, Subject, Message, SignatureVersion, MessageAttributes },
      {
        Type: "Notification",
        MessageId: messageId,
        TopicArn: arn,
        Subject: "Hear",
        Message: "it's\nä",
        SignatureVersion: signatureVersion,
        MessageAttributes: attributes,
      },
    );
    assert.equal(headers["x-amz-sns-message-type"], "Notification");
    assert.equal(headers["x-amz-sns-message-id"], messageId);
    assert.equal(headers["x-amz-sns-subscription-arn"], bench.topics.subscriptions(arn)[0]?.arn);
    assert.equal(headers["content-type"], "text/plain; charset=UTF-8");
    if (signatureVersion === "2") await bench.pages((UnsubscribeURL ?? "").replace("http://platform.test:1", ""));
  }
  assert.deepEqual(bench.topics.subscriptions(arn), []);
});

test("an unconfirmed subscription receives no messages, and a raw subscription receives the message text alone", async (t) => {
  const [silent, raw] = [await receiver(t), await receiver(t)];
  await using bench = await open(t);
  await subscribed(bench, raw, { isRaw: true });
  await bench.topics.subscribe({ ...plain, endpoint: silent.url });
  await eventually(() => silent.received.length === 1);
  await bench.topics.publish({ topicArn: arn, subject: "Unheard", text: '{"a":1}', attributes: {} });
  await eventually(() => raw.received.length === 2);
  assert.equal(raw.received[1]?.body, '{"a":1}');
  assert.equal(raw.received[1]?.headers["x-amz-sns-rawdelivery"], "true");
  assert.equal(silent.received.length, 1);
  await assert.rejects(bench.topics.confirm(arn, "guessed", true), /Invalid parameter: Token/);
});

test("a message is delivered in up to four attempts, 20 s apart, and in one if the endpoint returns a final error", async (t) => {
  const [busy, refusing] = [await receiver(t, [200, 500, 0, 429]), await receiver(t, [200, 400])];
  await using bench = await open(t, { clock: fast });
  await subscribed(bench, busy);
  await bench.topics.subscribe({ ...plain, endpoint: refusing.url });
  await eventually(() => refusing.received.length === 1);
  const token = (JSON.parse(refusing.received[0]?.body ?? "") as { Token: string }).Token;
  await bench.topics.confirm(arn, token, true);
  await bench.topics.publish({ topicArn: arn, subject: null, text: "again", attributes: {} });
  await eventually(() => busy.received.length === 5);
  const ids = new Set(busy.received.slice(1).map(({ headers }) => headers["x-amz-sns-message-id"]));
  assert.equal(ids.size, 1);
  assert.equal(refusing.received.length, 2);
});

test("published messages that were not delivered are delivered after a restart, and delivered ones are not repeated", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "gal-topics-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const documents = new DocumentMemory();
  const hook = await receiver(t, [200, 200, 0, 0]);
  {
    await using bench = await open(t, { documents, directory });
    await subscribed(bench, hook);
    await bench.topics.publish({ topicArn: arn, subject: null, text: "first", attributes: {} });
    await eventually(() => hook.received.length === 2);
    await eventually(() => ![...documents.held.values()].some(({ kind }) => kind === "sns-delivery"));
    for (const text of ["second", "third", "fourth"]) {
      await bench.topics.publish({ topicArn: arn, subject: null, text, attributes: {} });
    }
    await eventually(() => hook.received.length === 4);
  }
  await using bench = await open(t, { documents, directory });
  await eventually(() => ![...documents.held.values()].some(({ kind }) => kind === "sns-delivery"));
  const received = hook.received.slice(4).map(({ body }) => (JSON.parse(body) as { Message: string }).Message);
  assert.deepEqual(received.toSorted(), ["fourth", "second", "third"]);
  assert.ok(await verified(bench, JSON.parse(hook.received.at(-1)?.body ?? "") as Record<string, string>));
});

test("messages are not sent to addresses of this machine unless the operator allows it, and never to cloud metadata addresses", async (t) => {
  const hook = await receiver(t);
  const { port } = new URL(hook.url);
  const documents = new DocumentMemory();
  await using bench = await open(t, { documents, toThisMachine: false });
  await bench.topics.create(topic);
  const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const ownHosts = own.filter(({ family }) => family === "IPv4").map(({ address }) => address);
  const hosts = new Set([
    ...ownHosts,
    "127.0.0.1",
    "localhost",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "0.0.0.0",
    "2130706433",
    "169.254.169.254",
  ]);
  for (const host of hosts) {
    const endpoint = `http://${host}:${port}/hook`;
    await bench.topics.subscribe({ ...plain, endpoint });
  }
  const dead = () => [...documents.held.values()].filter(({ kind }) => kind === "sns-dead-letter");
  await eventually(() => dead().length === hosts.size);
  for (const { body } of dead()) assert.match(body, /messages are not sent to/);
  assert.equal(hook.received.length, 0);
});

/** Returns the recorded sum of a topic's metric. */
async function counted({ series }: Bench, metricName: string): Promise<number> {
  const dimensions = [{ name: "TopicName", value: "told" }];
  const endMs = Math.ceil((systemClock.epochMs() + 1) / 60_000) * 60_000;
  const query = { startMs: endMs - 600_000, endMs, periodMs: 60_000, unit: null };
  const points = await series.query({ namespace: "AWS/SNS", metricName, dimensions }, query);
  return points.reduce((all, { sum }) => all + sum, 0);
}

test("a filter policy drops messages only for its own subscription, and the dropped messages are counted", async (t) => {
  const [all, some] = [await receiver(t), await receiver(t)];
  await using bench = await open(t);
  await subscribed(bench, all, { isRaw: true });
  const filter = { policy: '{"kind":["wanted"]}', scope: "MessageBody" } as const;
  await subscribed(bench, some, { isRaw: true, filter });
  for (const text of ['{"kind":"other"}', "no JSON", '{"kind":"wanted"}']) {
    await bench.topics.publish({ topicArn: arn, subject: null, text, attributes: {} });
  }
  await eventually(() => all.received.length === 4 && some.received.length === 2);
  assert.equal(some.received[1]?.body, '{"kind":"wanted"}');
  assert.equal(await counted(bench, "NumberOfMessagesPublished"), 3);
  assert.equal(await counted(bench, "NumberOfNotificationsFilteredOut"), 2);
  assert.equal(await counted(bench, "NumberOfNotificationsFilteredOut-MessageBody"), 1);
  assert.equal(await counted(bench, "NumberOfNotificationsFilteredOut-InvalidMessageBody"), 1);
});

test("a delivery policy sets the number of attempts, the messages per second and the content type", async (t) => {
  const hook = await receiver(t, [200, 500, 500]);
  const documents = new DocumentMemory();
  await using bench = await open(t, { documents, clock: fast });
  const policy = {
    healthyRetryPolicy: { numRetries: 1, minDelayTarget: 1, maxDelayTarget: 1 },
    requestPolicy: { headerContentType: "application/json" },
  };
  await subscribed(bench, hook, { deliveryPolicy: JSON.stringify(policy) });
  await bench.topics.publish({ topicArn: arn, subject: null, text: "refused", attributes: {} });
  const dead = () => [...documents.held.values()].filter(({ kind }) => kind === "sns-dead-letter");
  await eventually(() => dead().length === 1);
  assert.match(dead()[0]?.body ?? "", /the endpoint responded with status 500, 2 times/);
  assert.equal(hook.received.length, 3);
  assert.equal(hook.received[2]?.headers["content-type"], "application/json");
  const { arn: own } = bench.topics.subscriptions(arn)[0] ?? { arn: "" };
  const deliveryPolicy = '{"throttlePolicy":{"maxReceivesPerSecond":1}}';
  await bench.topics.changeSubscription(own, (each) => ({ ...each, deliveryPolicy }));
  const beganAtMs = fast.epochMs();
  for (let count = 0; count < 21; count += 1) {
    await bench.topics.publish({ topicArn: arn, subject: null, text: "paced", attributes: {} });
  }
  await eventually(() => hook.received.length === 24);
  // At one message a second, the first and the last delivery are at least 20 s apart. A busy machine may take longer.
  assert.ok(fast.epochMs() - beganAtMs >= 20_000, String(fast.epochMs() - beganAtMs));
});

test("a redirect of an endpoint is not followed, and a response without end is not buffered", async (t) => {
  const elsewhere = await receiver(t);
  let writtenBytes = 0;
  let requestCount = 0;
  const hostile = createServer((request, response) => {
    request.resume();
    requestCount += 1;
    if (request.url === "/redirects") {
      response.writeHead(307, { location: elsewhere.url }).end();
      return;
    }
    response.writeHead(200);
    const more = () => {
      do writtenBytes += 65_536;
      while (!response.destroyed && response.write(Buffer.alloc(65_536)));
      response.once("drain", more);
    };
    more();
  });
  await new Promise<void>((resolve) => hostile.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    hostile.closeAllConnections();
    hostile.close();
  });
  const url = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`;
  const documents = new DocumentMemory();
  await using bench = await open(t, { documents, clock: fast });
  await bench.topics.create(topic);
  await bench.topics.subscribe({ ...plain, endpoint: `${url}/redirects` });
  const dead = () => [...documents.held.values()].filter(({ kind }) => kind === "sns-dead-letter");
  await eventually(() => dead().length === 1);
  assert.match(dead()[0]?.body ?? "", /the endpoint responded with status 307, 4 times/);
  assert.equal(requestCount, 4);
  assert.equal(elsewhere.received.length, 0);
  await bench.topics.subscribe({ ...plain, endpoint: `${url}/endless` });
  await eventually(() => ![...documents.held.values()].some(({ kind }) => kind === "sns-delivery"));
  assert.equal(requestCount, 5);
  // The platform does not read the endless response, so the receiver can write only as much as the sockets buffer.
  assert.ok(writtenBytes < 64 * 2 ** 20, String(writtenBytes));
});

test("deliveries are logged in SNS's format when the topic's feedback roles request it", async (t) => {
  const hook = await receiver(t, [200, 200, 400]);
  await using bench = await open(t);
  await subscribed(bench, hook);
  const publish = (text: string) => bench.topics.publish({ topicArn: arn, subject: null, text, attributes: {} });
  await publish("unlogged");
  await eventually(() => hook.received.length === 2);
  const role = "arn:aws:iam::000000000000:role/SNSFeedback";
  const feedback = { successRole: role, successSampleRate: 100, failureRole: role };
  await eventually(async () => (await counted(bench, "NumberOfNotificationsDelivered")) === 2);
  await bench.topics.change(arn, (before) => ({ ...before, feedback }));
  await publish("refused");
  await eventually(() => bench.logged.length === 1);
  await bench.topics.change(arn, (before) => ({ ...before, feedback: { ...feedback, successSampleRate: 0 } }));
  await publish("not sampled");
  await eventually(async () => (await counted(bench, "NumberOfNotificationsDelivered")) === 3);
  await bench.topics.change(arn, (before) => ({ ...before, feedback }));
  const messageId = await publish("taken");
  await eventually(() => bench.logged.length === 2);
  const [failed, acquired] = bench.logged.map(
    ({ text }) => JSON.parse(text) as Record<string, Record<string, unknown>>,
  );
  assert.deepEqual(
    bench.logged.map(({ group }) => group),
    ["sns/us-east-1/000000000000/told/Failure", "sns/us-east-1/000000000000/told"],
  );
  const { dwellTimeMs, deliveryId, ...delivery } = acquired?.["delivery"] ?? {};
  assert.ok(typeof dwellTimeMs === "number" && typeof deliveryId === "string");
  assert.deepEqual(delivery, {
    destination: hook.url,
    providerResponse: "the endpoint responded with status 200",
    attempts: 1,
    statusCode: 200,
  });
  const { timestamp, ...notification } = acquired?.["notification"] ?? {};
  assert.match(String(timestamp), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/);
  const messageMD5Sum = createHash("md5").update("taken").digest("hex");
  assert.deepEqual(notification, { messageMD5Sum, messageId, topicArn: arn });
  assert.deepEqual([acquired?.["status"], failed?.["status"]], ["SUCCESS", "FAILURE"]);
  assert.deepEqual([failed?.["delivery"]?.["statusCode"], failed?.["delivery"]?.["attempts"]], [400, 1]);
});
