import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import type { AwsCalls, CallError } from "./client.ts";

interface LogOptions {
  readonly name: string;
  readonly tails: boolean;
}

/** Calls each operation of CloudWatch Logs, including a live tail session if the client has the operation. */
export async function logs(calls: AwsCalls, { name, tails }: LogOptions): Promise<void> {
  const { call } = calls;
  const group = { logGroupName: `/conversations/${name}` };
  const stream = { ...group, logStreamName: "one" };
  await call("logs", "CreateLogGroup", group);
  await call("logs", "CreateLogStream", stream);
  await call("logs", "PutRetentionPolicy", { ...group, retentionInDays: 3 });
  const { logGroups: groups } = await call("logs", "DescribeLogGroups", { logGroupNamePrefix: group.logGroupName });
  assert.equal(groups[0].retentionInDays, 3);
  await call("logs", "DeleteRetentionPolicy", group);
  const { logGroups: kept } = await call("logs", "DescribeLogGroups", { logGroupNamePrefix: group.logGroupName });
  assert.deepEqual([kept.length, kept[0].retentionInDays], [1, undefined]);
  if (tails) {
    const requested = { logGroupIdentifiers: [groups[0].logGroupArn], logEventFilterPattern: "error" };
    const { responseStream: reported } = await call("logs", "StartLiveTail", requested);
    assert.equal(reported[0].sessionStart.logEventFilterPattern, "error");
  }
  const timestamp = Date.now();
  const logEvents = ["an error, here", "a word"].map((message) => ({ timestamp, message }));
  await call("logs", "PutLogEvents", { ...stream, logEvents });
  const { logStreams: streams } = await call("logs", "DescribeLogStreams", group);
  assert.equal(streams[0].logStreamName, "one");
  const { events } = await call("logs", "FilterLogEvents", { ...group, filterPattern: "error" });
  assert.deepEqual(
    events.map((event: { message: string }) => event.message),
    ["an error, here"],
  );
  assert.equal((await call("logs", "GetLogEvents", { ...stream, startFromHead: true }))["events"].length, 2);
  await queries(calls, group);
  await metricFilters(calls, group);
  await call("logs", "DeleteLogStream", stream);
  assert.deepEqual((await call("logs", "DescribeLogStreams", group))["logStreams"], []);
  await call("logs", "DeleteLogGroup", group);
  await assert.rejects(call("logs", "GetLogEvents", stream), { code: "ResourceNotFoundException" });
}

type Group = { readonly logGroupName: string };

async function queries({ call }: AwsCalls, group: Group): Promise<void> {
  const nowSeconds = Math.floor(Date.now() / 1000);
  const requested = { ...group, startTime: nowSeconds - 600, endTime: nowSeconds + 600 };
  const queryString = "filter @message like /error/ | display @message";
  const { queryId } = await call("logs", "StartQuery", { ...requested, queryString });
  let reported;
  do {
    await pause(50);
    reported = await call("logs", "GetQueryResults", { queryId });
  } while (reported["status"] !== "Complete");
  assert.deepEqual(reported["results"][0][0], { field: "@message", value: "an error, here" });
  const { queries: listed } = await call("logs", "DescribeQueries", group);
  assert.equal(listed[0].queryId, queryId);
  const second = await call("logs", "StartQuery", { ...requested, queryString: "stats count(*)" });
  const stopped = { queryId: second["queryId"] };
  const end = await call("logs", "StopQuery", stopped).then(
    () => "Cancelled",
    (error: CallError) => {
      assert.match(error.message, /already ended/);
      return "Complete";
    },
  );
  assert.equal((await call("logs", "GetQueryResults", stopped))["status"], end);
}

async function metricFilters({ call }: AwsCalls, group: Group): Promise<void> {
  const tried = { filterPattern: "error", logEventMessages: ["an error, here", "a word"] };
  const { matches } = await call("logs", "TestMetricFilter", tried);
  assert.equal(matches.length, 1);
  const own = { ...group, filterName: "errors" };
  const metricTransformations = [{ metricNamespace: "Conversations", metricName: "Errors", metricValue: "1" }];
  await call("logs", "PutMetricFilter", { ...own, filterPattern: "error", metricTransformations });
  const { metricFilters: listed } = await call("logs", "DescribeMetricFilters", group);
  assert.equal(listed[0].filterName, "errors");
  await call("logs", "DeleteMetricFilter", own);
  assert.deepEqual((await call("logs", "DescribeMetricFilters", group))["metricFilters"], []);
}
