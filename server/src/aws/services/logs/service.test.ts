import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  CloudWatchLogsClient,
  CreateLogGroupCommand,
  CreateLogStreamCommand,
  DescribeLogGroupsCommand,
  type DescribeLogGroupsCommandInput,
  DescribeLogStreamsCommand,
  FilterLogEventsCommand,
  GetLogEventsCommand,
  PutLogEventsCommand,
  paginateFilterLogEvents,
} from "@aws-sdk/client-cloudwatch-logs";
import { silentLogger } from "../../../base/index.ts";
import { createDirectoryLogStreams } from "../../../hosting/index.ts";
import { HandClock, serveServices } from "../service-fixtures.ts";
import { parseFilterPattern } from "./filter-pattern.ts";
import { logsService } from "./index.ts";

const group = "/aws/sagemaker/Endpoints/e";

async function served() {
  const clock = new HandClock();
  const directory = await mkdtemp(join(tmpdir(), "logs-"));
  const store = createDirectoryLogStreams({
    directory,
    clock,
    logger: silentLogger,
    streamBytesMax: 1e6,
    streamsMax: 10,
    groupsMax: 10,
  });
  const gateway = await serveServices([logsService({ logs: store, clock })]);
  const client = new CloudWatchLogsClient(gateway.client);
  return {
    clock,
    store,
    client,
    async [Symbol.asyncDispose]() {
      client.destroy();
      await gateway[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

test("a container's lines are found by group and stream, and pages are read until the token repeats", async () => {
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

test("FilterLogEvents merges streams by time and pages through all of them without loss or repetition", async () => {
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

test("what is absent or wrong has the service's codes and texts", async () => {
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

test("a log group that should be encrypted, kept from deletion, tagged or of another class is refused", async () => {
  await using at = await served();
  for (const [member, asked] of [
    ["kmsKeyId k", { kmsKeyId: "k" }],
    ["deletionProtectionEnabled true", { deletionProtectionEnabled: true }],
    ["tags", { tags: { team: "a" } }],
    ["logGroupClass DELIVERY", { logGroupClass: "DELIVERY" }],
  ] as const) {
    await assert.rejects(at.client.send(new CreateLogGroupCommand({ logGroupName: group, ...asked })), {
      name: "InvalidParameterException",
      message: `${member} is not supported by this platform yet.`,
    });
  }
  const plain = { deletionProtectionEnabled: false, logGroupClass: "STANDARD" } as const;
  await at.client.send(new CreateLogGroupCommand({ logGroupName: group, ...plain }));
});

test("log groups are listed by prefix, pattern, name or class, and what is no such filter is refused", async () => {
  await using at = await served();
  for (const logGroupName of ["/a/one", "/a/two", "/b/one"])
    await at.client.send(new CreateLogGroupCommand({ logGroupName }));
  const names = async (asked: DescribeLogGroupsCommandInput) =>
    (await at.client.send(new DescribeLogGroupsCommand(asked))).logGroups?.map(({ logGroupName }) => logGroupName);
  assert.deepEqual(await names({ logGroupNamePrefix: "/a" }), ["/a/one", "/a/two"]);
  assert.deepEqual(await names({ logGroupNamePattern: "one" }), ["/a/one", "/b/one"]);
  const arn = "arn:aws:logs:us-east-1:000000000000:log-group:/a/two";
  assert.deepEqual(await names({ logGroupIdentifiers: ["/b/one", arn, "absent"] }), ["/a/two", "/b/one"]);
  assert.equal((await names({ logGroupClass: "STANDARD" }))?.length, 3);
  assert.deepEqual(await names({ logGroupClass: "INFREQUENT_ACCESS" }), []);
  for (const [asked, message] of [
    [{ logGroupNamePrefix: "/a", logGroupNamePattern: "one" }, /mutually exclusive parameters/],
    [{ includeLinkedAccounts: true }, /^includeLinkedAccounts true is not supported by this platform yet/],
    [{ accountIdentifiers: ["111111111111"] }, /^accountIdentifiers is not supported by this platform yet/],
  ] as const)
    await assert.rejects(names({ ...asked } as DescribeLogGroupsCommandInput), {
      name: "InvalidParameterException",
      message,
    });
});

test("an event of a time that no date can name is refused, and nothing is written", async () => {
  await using at = await served();
  await at.client.send(new CreateLogGroupCommand({ logGroupName: group }));
  await at.client.send(new CreateLogStreamCommand({ logGroupName: group, logStreamName: "s" }));
  const logEvents = [{ timestamp: 8.64e15 + 1, message: "m" }];
  await assert.rejects(
    at.client.send(new PutLogEventsCommand({ logGroupName: group, logStreamName: "s", logEvents })),
    {
      name: "InvalidParameterException",
    },
  );
});

test("a filter pattern's terms must occur, its ?terms in part, its -terms not at all", () => {
  const matches = (pattern: string, message: string) => parseFilterPattern(pattern)(message);
  assert.ok(matches("", "anything"));
  assert.ok(matches("ERROR 500", "500 is an ERROR"));
  assert.ok(!matches("ERROR 500", "ERROR 404"));
  assert.ok(matches('"is an"', "500 is an ERROR") && !matches('"an is"', "500 is an ERROR"));
  assert.ok(matches("?WARN ?ERROR", "a WARN") && !matches("?WARN ?ERROR", "fine"));
  assert.ok(!matches("ERROR -ping", "ERROR in ping"));
  assert.throws(() => parseFilterPattern("{ $.level = 1 }"), { code: "InvalidParameterException" });
});
