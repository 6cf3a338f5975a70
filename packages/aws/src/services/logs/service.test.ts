import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";

import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  CloudWatchLogsClient,
  CreateLogGroupCommand,
  CreateLogStreamCommand,
  DeleteLogGroupCommand,
  DeleteMetricFilterCommand,
  DeleteRetentionPolicyCommand,
  DescribeLogGroupsCommand,
  type DescribeLogGroupsCommandInput,
  DescribeLogStreamsCommand,
  DescribeMetricFiltersCommand,
  FilterLogEventsCommand,
  GetLogEventsCommand,
  PutLogEventsCommand,
  PutMetricFilterCommand,
  PutRetentionPolicyCommand,
  TestMetricFilterCommand,
  paginateFilterLogEvents,
} from "@aws-sdk/client-cloudwatch-logs";
import { silentLogger, systemClock } from "@galatea/base";
import { createDirectoryLogStreams } from "@galatea/hosting";
import { MemoryDocuments } from "@galatea/hosting/records";
import { InMemoryMetricStore } from "@galatea/base/metrics";
import { ManualClock, serveServices } from "../service-fixtures.ts";
import { GroupFilters, lazyLogQueries, logsService, openMetricFilterStore } from "./index.ts";

const group = "/aws/sagemaker/Endpoints/e";

async function served(stopping = new AbortController().signal) {
  const clock = new ManualClock();
  const directory = await mkdtemp(join(tmpdir(), "logs-"));
  const store = createDirectoryLogStreams({
    directory,
    clock,
    logger: silentLogger,
    streamBytesMax: 1e6,
    streamsMax: 10,
    groupsMax: 10,
  });
  const queries = lazyLogQueries({ store, clock: systemClock, logger: silentLogger, newId: randomUUID });
  const series = new InMemoryMetricStore({ clock, seriesMax: 100, bytesMax: 1e6 });
  const filters = openMetricFilterStore(new MemoryDocuments(), silentLogger);
  const metricFilters = await GroupFilters.open({ store: filters, logs: store, series, logger: silentLogger });
  const gateway = await serveServices([logsService({ logs: store, clock, stopping, queries, metricFilters })]);
  const client = new CloudWatchLogsClient({ ...gateway.client, disableHostPrefix: true });
  return {
    clock,
    store,
    series,
    client,
    async [Symbol.asyncDispose]() {
      client.destroy();
      await queries[Symbol.asyncDispose]();
      await gateway[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

test("GetLogEvents returns a container's lines by group and stream; the token repeats at the end", async () => {
  await using at = await served();
  at.store.writer(group, "AllTraffic/i-1")(Buffer.from("one\ntwo\nthree\n"));
  await at.store[Symbol.asyncDispose]();
  const groups = await at.client.send(new DescribeLogGroupsCommand({ logGroupNamePrefix: "/aws/sagemaker" }));
  assert.deepEqual(
    groups.logGroups?.map(({ logGroupName, arn }) => [logGroupName, arn]),
    [[group, `arn:aws:logs:us-east-1:111122223333:log-group:${group}:*`]],
  );
  const streams = await at.client.send(
    new DescribeLogStreamsCommand({ logGroupName: group, orderBy: "LastEventTime", descending: true }),
  );
  assert.deepEqual(
    streams.logStreams?.map(({ logStreamName, lastEventTimestamp }) => [logStreamName, lastEventTimestamp]),
    [["AllTraffic/i-1", at.clock.nowMs]],
  );
  const read = (nextToken?: string) =>
    at.client.send(
      new GetLogEventsCommand({
        logGroupName: group,
        logStreamName: "AllTraffic/i-1",
        startFromHead: true,
        limit: 2,
        nextToken,
      }),
    );
  const first = await read();
  const second = await read(first.nextForwardToken);
  const end = await read(second.nextForwardToken);
  assert.deepEqual(
    [first, second, end].map(({ events }) => events?.map(({ message }) => message)),
    [["one", "two"], ["three"], []],
  );
  assert.equal(end.nextForwardToken, second.nextForwardToken);
});

test("FilterLogEvents merges streams by time and returns every event once over all pages", async () => {
  await using at = await served();
  await at.client.send(new CreateLogGroupCommand({ logGroupName: group }));
  const from = at.clock.nowMs - 1000;
  for (const [name, offset] of [
    ["a", 0],
    ["b", 1],
  ] as const) {
    await at.client.send(new CreateLogStreamCommand({ logGroupName: group, logStreamName: name }));
    const logEvents = Array.from({ length: 10 }, (_, index) => ({
      timestamp: from + Math.floor(index / 3) * 10 + offset * 10,
      message: `${index % 2 === 0 ? "ERROR" : "INFO"} ${name}${index}`,
    }));
    await at.client.send(new PutLogEventsCommand({ logGroupName: group, logStreamName: name, logEvents }));
  }
  const seen: { message?: string | undefined; timestamp?: number | undefined }[] = [];
  const pages = paginateFilterLogEvents(
    { client: at.client },
    { logGroupName: group, filterPattern: "ERROR", limit: 2 },
  );
  for await (const page of pages) seen.push(...(page.events ?? []));
  assert.equal(seen.length, 10);
  assert.equal(new Set(seen.map(({ message }) => message)).size, 10);
  const times = seen.map(({ timestamp }) => timestamp ?? 0);
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
  );
  const some = await at.client.send(
    new FilterLogEventsCommand({
      logGroupName: group,
      logStreamNames: ["b"],
      startTime: from + 20,
      endTime: from + 20,
    }),
  );
  assert.deepEqual(
    some.events?.map(({ message }) => message),
    ["INFO b3", "ERROR b4", "INFO b5"],
  );
});

test("missing groups and streams and invalid input get the codes and texts of CloudWatch Logs", async () => {
  await using at = await served();
  const absent = { name: "ResourceNotFoundException", message: "The specified log group does not exist." };
  await assert.rejects(at.client.send(new DescribeLogStreamsCommand({ logGroupName: group })), absent);
  await assert.rejects(at.client.send(new FilterLogEventsCommand({ logGroupName: group })), absent);
  await at.client.send(new CreateLogGroupCommand({ logGroupName: group }));
  await assert.rejects(at.client.send(new GetLogEventsCommand({ logGroupName: group, logStreamName: "s" })), {
    name: "ResourceNotFoundException",
    message: "The specified log stream does not exist.",
  });
  await assert.rejects(at.client.send(new CreateLogGroupCommand({ logGroupName: group })), {
    name: "ResourceAlreadyExistsException",
  });
});

test("CreateLogGroup rejects encryption, deletion protection, tags and other log classes", async () => {
  await using at = await served();
  for (const [member, requested] of [
    ["kmsKeyId k", { kmsKeyId: "k" }],
    ["deletionProtectionEnabled true", { deletionProtectionEnabled: true }],
    ["tags", { tags: { team: "a" } }],
    ["logGroupClass DELIVERY", { logGroupClass: "DELIVERY" }],
  ] as const) {
    await assert.rejects(at.client.send(new CreateLogGroupCommand({ logGroupName: group, ...requested })), {
      name: "InvalidParameterException",
      message: `${member} is not supported by this platform yet.`,
    });
  }
  const plain = { deletionProtectionEnabled: false, logGroupClass: "STANDARD" } as const;
  await at.client.send(new CreateLogGroupCommand({ logGroupName: group, ...plain }));
});

test("DescribeLogGroups filters by prefix, pattern, name or class, and rejects invalid filters", async () => {
  await using at = await served();
  for (const logGroupName of ["/a/one", "/a/two", "/b/one"])
    await at.client.send(new CreateLogGroupCommand({ logGroupName }));
  const names = async (requested: DescribeLogGroupsCommandInput) =>
    (await at.client.send(new DescribeLogGroupsCommand(requested))).logGroups?.map(({ logGroupName }) => logGroupName);
  assert.deepEqual(await names({ logGroupNamePrefix: "/a" }), ["/a/one", "/a/two"]);
  assert.deepEqual(await names({ logGroupNamePattern: "one" }), ["/a/one", "/b/one"]);
  const arn = "arn:aws:logs:us-east-1:000000000000:log-group:/a/two";
  assert.deepEqual(await names({ logGroupIdentifiers: ["/b/one", arn, "absent"] }), ["/a/two", "/b/one"]);
  assert.equal((await names({ logGroupClass: "STANDARD" }))?.length, 3);
  assert.deepEqual(await names({ logGroupClass: "INFREQUENT_ACCESS" }), []);
  for (const [requested, message] of [
    [{ logGroupNamePrefix: "/a", logGroupNamePattern: "one" }, /mutually exclusive parameters/],
    [{ includeLinkedAccounts: true }, /^includeLinkedAccounts true is not supported by this platform yet/],
    [{ accountIdentifiers: ["111111111111"] }, /^accountIdentifiers is not supported by this platform yet/],
  ] as const)
    await assert.rejects(names({ ...requested } as DescribeLogGroupsCommandInput), {
      name: "InvalidParameterException",
      message,
    });
});

test("PutLogEvents reports events that are too old, expired or too new, and writes the others", async () => {
  await using at = await served();
  await at.client.send(new CreateLogGroupCommand({ logGroupName: group }));
  await at.client.send(new CreateLogStreamCommand({ logGroupName: group, logStreamName: "s" }));
  const put = (logEvents: { timestamp: number; message: string }[]) =>
    at.client.send(new PutLogEventsCommand({ logGroupName: group, logStreamName: "s", logEvents }));
  const messages = async () => {
    const requested = { logGroupName: group, logStreamName: "s", startFromHead: true };
    return (await at.client.send(new GetLogEventsCommand(requested))).events?.map(({ message }) => message);
  };
  const [hourMs, dayMs, now] = [3_600_000, 86_400_000, at.clock.nowMs];
  const event = (timestamp: number, message: string) => ({ timestamp, message });
  const old = await put([event(now - 14 * dayMs - 1, "old"), event(now - 14 * dayMs, "edge")]);
  assert.deepEqual(old.rejectedLogEventsInfo, { tooOldLogEventEndIndex: 1 });
  const young = await put([event(now + 2 * hourMs, "soon"), event(now + 2 * hourMs + 1, "later")]);
  assert.deepEqual(young.rejectedLogEventsInfo, { tooNewLogEventStartIndex: 1 });
  assert.deepEqual((await put([event(8.64e15 + 1, "no date")])).rejectedLogEventsInfo, { tooNewLogEventStartIndex: 0 });
  assert.deepEqual(await messages(), ["edge", "soon"]);
  await at.client.send(new PutRetentionPolicyCommand({ logGroupName: group, retentionInDays: 1 }));
  const expired = await put([event(now - dayMs - 1, "expired"), event(now - 1, "kept")]);
  assert.deepEqual(expired.rejectedLogEventsInfo, { expiredLogEventEndIndex: 1 });
  assert.deepEqual(await messages(), ["soon", "kept"]);
  assert.equal((await put([event(now, "whole")])).rejectedLogEventsInfo, undefined);
});

test("PutLogEvents rejects too many bytes, a time span over 24 hours, and events out of order", async () => {
  await using at = await served();
  await at.client.send(new CreateLogGroupCommand({ logGroupName: group }));
  await at.client.send(new CreateLogStreamCommand({ logGroupName: group, logStreamName: "s" }));
  const now = at.clock.nowMs;
  for (const [logEvents, message] of [
    [
      [
        { timestamp: now, message: "b" },
        { timestamp: now - 1, message: "a" },
      ],
      /chronological order/,
    ],
    [
      [
        { timestamp: now - 86_400_001, message: "a" },
        { timestamp: now, message: "b" },
      ],
      /cannot span more than 24 hours/,
    ],
    [Array.from({ length: 5 }, () => ({ timestamp: now, message: "x".repeat(210_000) })), /^Upload too large: 1050130/],
  ] as const) {
    await assert.rejects(
      at.client.send(new PutLogEventsCommand({ logGroupName: group, logStreamName: "s", logEvents: [...logEvents] })),
      { name: "InvalidParameterException", message },
    );
  }
});

test("a group's retention can be set to the allowed numbers of days, is listed, and can be deleted", async () => {
  await using at = await served();
  await at.client.send(new CreateLogGroupCommand({ logGroupName: group }));
  const retention = async () =>
    (await at.client.send(new DescribeLogGroupsCommand({}))).logGroups?.[0]?.retentionInDays;
  await at.client.send(new PutRetentionPolicyCommand({ logGroupName: group, retentionInDays: 30 }));
  assert.equal(await retention(), 30);
  await assert.rejects(at.client.send(new PutRetentionPolicyCommand({ logGroupName: group, retentionInDays: 2 })), {
    name: "InvalidParameterException",
    message:
      /Value '2' at 'retentionInDays' failed to satisfy constraint: Member must satisfy enum value set: \[1, 3, 5,/,
  });
  await at.client.send(new DeleteRetentionPolicyCommand({ logGroupName: group }));
  assert.equal(await retention(), undefined);
});

test("FilterLogEvents accepts every kind of pattern and rejects invalid ones", async () => {
  await using at = await served();
  await at.client.send(new CreateLogGroupCommand({ logGroupName: group }));
  await at.client.send(new CreateLogStreamCommand({ logGroupName: group, logStreamName: "s" }));
  const messages = ['{"level":"ERROR","ms":12}', "GET /ping 200", "GET /invocations 424", '{"level":"INFO","ms":300}'];
  const logEvents = messages.map((message) => ({ timestamp: at.clock.nowMs, message }));
  await at.client.send(new PutLogEventsCommand({ logGroupName: group, logStreamName: "s", logEvents }));
  const found = async (filterPattern: string) =>
    (await at.client.send(new FilterLogEventsCommand({ logGroupName: group, filterPattern }))).events?.map(
      ({ message }) => messages.indexOf(message ?? ""),
    );
  assert.deepEqual(await found('{ $.level = "ERROR" || $.ms > 100 }'), [0, 3]);
  assert.deepEqual(await found("[method, path, status = 4*]"), [2]);
  assert.deepEqual(await found("GET -ping"), [2]);
  assert.deepEqual(await found("%[24]\\d\\d$%"), [1, 2]);
  await assert.rejects(found("{ $.level }"), {
    name: "InvalidParameterException",
    message: /^Invalid filter pattern: /,
  });
});

test("metric filters record metrics with values and dimensions from written events until the filter or its group is deleted", async () => {
  await using at = await served();
  const put = (filterName: string, filterPattern: string, transformation: object) =>
    at.client.send(
      new PutMetricFilterCommand({
        logGroupName: group,
        filterName,
        filterPattern,
        metricTransformations: [
          { metricNamespace: "Mine", metricName: filterName, metricValue: "1", ...transformation },
        ],
      }),
    );
  await assert.rejects(put("lost", "ERROR", {}), { name: "ResourceNotFoundException" });
  await at.client.send(new CreateLogGroupCommand({ logGroupName: group }));
  await at.client.send(new CreateLogStreamCommand({ logGroupName: group, logStreamName: "s" }));
  await put("errors", "ERROR", { defaultValue: 0 });
  await put("latency", "{ $.ms > 0 }", { metricValue: "$.ms", unit: "Milliseconds", dimensions: { Path: "$.path" } });
  await put("bytes", "[verb, path, bytes > 0]", { metricValue: "$bytes" });
  const messages = [
    "ERROR",
    "an ERROR",
    '{"ms":5,"path":"/a"}',
    '{"ms":7,"path":"/a"}',
    '{"ms":7}',
    "GET /b 70",
    "GET /c 30",
  ];
  at.store.writer(group, "printed")(Buffer.from(`${messages.slice(0, 4).join("\n")}\n`));
  await at.store[Symbol.asyncDispose]();
  const logEvents = messages.slice(4).map((message) => ({ message, timestamp: at.clock.nowMs }));
  await at.client.send(new PutLogEventsCommand({ logGroupName: group, logStreamName: "s", logEvents }));
  const found = async (
    metricName: string,
    dimensions: readonly { readonly name: string; readonly value: string }[] = [],
  ) => {
    const range = { startMs: at.clock.nowMs - 60_000, endMs: at.clock.nowMs + 60_000, periodMs: 60_000, unit: null };
    const [point] = await at.series.query({ namespace: "Mine", metricName, dimensions }, range);
    return [point?.sampleCount, point?.sum, point?.unit];
  };
  assert.deepEqual(await found("errors"), [7, 2, "None"]);
  assert.deepEqual(await found("latency", [{ name: "Path", value: "/a" }]), [2, 12, "Milliseconds"]);
  assert.deepEqual(await found("bytes"), [2, 100, "None"]);
  const listed = await at.client.send(new DescribeMetricFiltersCommand({ logGroupName: group }));
  assert.deepEqual(
    listed.metricFilters?.map(({ filterName, metricTransformations }) => [
      filterName,
      metricTransformations?.[0]?.metricValue,
    ]),
    [
      ["bytes", "$bytes"],
      ["errors", "1"],
      ["latency", "$.ms"],
    ],
  );
  await at.client.send(new DeleteMetricFilterCommand({ logGroupName: group, filterName: "bytes" }));
  await at.client.send(new PutLogEventsCommand({ logGroupName: group, logStreamName: "s", logEvents }));
  assert.deepEqual([(await found("bytes"))[0], (await found("errors"))[0]], [2, 10]);
  const groups = async () => (await at.client.send(new DescribeLogGroupsCommand({}))).logGroups;
  assert.equal((await groups())?.[0]?.metricFilterCount, 2);
  await at.client.send(new DeleteLogGroupCommand({ logGroupName: group }));
  assert.deepEqual((await at.client.send(new DescribeMetricFiltersCommand({}))).metricFilters, []);
});

test("TestMetricFilter returns matching messages with the extracted values, and invalid filters are rejected", async () => {
  await using at = await served();
  const tried = async (filterPattern: string, ...logEventMessages: string[]) => {
    const { matches } = await at.client.send(new TestMetricFilterCommand({ filterPattern, logEventMessages }));
    return matches?.map(({ eventNumber, extractedValues }) => [eventNumber, extractedValues]);
  };
  assert.deepEqual(await tried("[ip, ..., size]", "10.0.0.1 - GET 5", "one"), [[1, { $ip: "10.0.0.1", $size: "5" }]]);
  assert.deepEqual(await tried('{ $.a.b = 1 && $.c = "x*" }', '{"a":{"b":1},"c":"xy"}'), [
    [1, { "$.a.b": "1", "$.c": "xy" }],
  ]);
  assert.deepEqual(await tried("x", "a", "x"), [[2, {}]]);
  await at.client.send(new CreateLogGroupCommand({ logGroupName: group }));
  const put = (filterPattern: string, transformation: object) =>
    at.client.send(
      new PutMetricFilterCommand({
        logGroupName: group,
        filterName: "f",
        filterPattern,
        metricTransformations: [{ metricNamespace: "Mine", metricName: "m", metricValue: "1", ...transformation }],
      }),
    );
  for (const [pattern, transformation] of [
    ["{ $.a = ", {}],
    ["x", { metricValue: "many" }],
    ["x", { metricValue: "$.a" }],
    ["{ $.a = 1 }", { metricValue: "$a" }],
    ["x", { metricNamespace: "AWS/SageMaker" }],
    ["{ $.a = 1 }", { dimensions: { A: "$.a" }, defaultValue: 0 }],
    ["{ $.a = 1 }", { dimensions: { A: "$.a", B: "$.a", C: "$.a", D: "$.a" } }],
  ] as const) {
    await assert.rejects(put(pattern, transformation), { name: "InvalidParameterException" }, pattern);
  }
});
