import { AwsError, type Clock, type LazyResource } from "@galatea/base";
import logs from "../../spec/gen/logs.json" with { type: "json" };
import type { LogsInputs, LogsOperations } from "../../spec/gen/logs.ts";
import { asServiceModel } from "../../spec/index.ts";
import {
  lazyRows,
  pageAfter,
  pageToken,
  positionOfToken,
  type CallContext,
  type Listing,
  type LazyOperationRows,
  type ModelledService,
  type OperationRows,
  type UnsupportedMember,
} from "../../wire/index.ts";
import { filterEvents } from "./filter-events.ts";
import {
  logsArnPrefix,
  logGroupNameOf,
  invalidLogToken,
  logPageQuery,
  type NamedGroup,
  logParameterError as invalid,
} from "./log-names.ts";
import type { GroupFilters } from "./group-filters.ts";
import { LiveTails } from "./live-tail.ts";
import { checkRetentionDays } from "./retention.ts";
import { putEvents } from "./put-events.ts";
import { startLiveTail } from "./start-live-tail.ts";
import type { LogGroup, LogStream, LogStreams } from "@galatea/hosting";
import { createMessageMatcher } from "./message-matcher.ts";
import type { LogQueries } from "./queries/index.ts";

export interface LogsDependencies {
  readonly logs: LogStreams;
  readonly clock: Clock;
  /** Aborts when the platform stops, which ends live tail sessions. */
  readonly stopping: AbortSignal;
  readonly queries: LazyResource<LogQueries>;
  readonly metricFilters: GroupFilters;
  /** Returns whether DescribeLogGroups shows a group to the caller. If absent, all callers see all groups. */
  readonly listsGroup?: (accessKeyId: string | null, group: string) => boolean;
}

/** Maximum number of events per page of GetLogEvents and FilterLogEvents. */
const eventsPerPage = 10_000;
/** Number of streams that are read concurrently. */
const streamsAtATime = 16;
/** Maximum number of streams that FilterLogEvents searches, as in CloudWatch Logs. */
const searchedStreamsMax = 100;

const filterOperations = [
  "PutMetricFilter",
  "DeleteMetricFilter",
  "TestMetricFilter",
  "DescribeMetricFilters",
] as const;
const queryOperations = ["StartQuery", "GetQueryResults", "StopQuery", "DescribeQueries"] as const;

const standardClass = "STANDARD";

const otherAccounts: readonly UnsupportedMember[] = [
  { path: "accountIdentifiers", harmless: (value) => Array.isArray(value) && value.length === 0 },
  { path: "includeLinkedAccounts", harmless: (value) => value === false },
];
const latestFirst: readonly UnsupportedMember[] = [{ path: "startFromHead", harmless: (value) => value === true }];
/** Settings of a new log group that are not implemented. */
const unkeptPromises: readonly UnsupportedMember[] = [
  { path: "kmsKeyId" },
  { path: "deletionProtectionEnabled", harmless: (value) => value === false },
  { path: "tags" },
  { path: "logGroupClass", harmless: (value) => value === standardClass },
];

const group = (input: NamedGroup, context: CallContext) => `${logsArnPrefix(context)}${logGroupNameOf(input)}`;
const stream = (input: NamedGroup & { readonly logStreamName: string }, context: CallContext) =>
  `${group(input, context)}:log-stream:${input.logStreamName}`;

/** CloudWatch Logs over the files that contain the output of containers. */
export function logsService(dependencies: LogsDependencies) {
  const { logs: store, clock, stopping, queries, metricFilters } = dependencies;
  const tails = new LiveTails({ store, clock, stopping });
  const operations: LazyOperationRows<LogsOperations> = {
    DescribeLogGroups: {
      resource: (_, context) => `${logsArnPrefix(context)}*`,
      unsupportedMembers: otherAccounts,
      handle: (input, context) => describeGroups(dependencies, input, context),
    },
    DescribeLogStreams: {
      resource: group,
      handle: (input, context) => describeStreams(store, input, context),
    },
    GetLogEvents: {
      resource: stream,
      handle: (input) => getEvents(store, input, clock.epochMs()),
    },
    FilterLogEvents: {
      resource: group,
      unsupportedMembers: latestFirst,
      handle: (input, { nextTick }) => filter(store, input, { nowMs: clock.epochMs(), nextTick }),
    },
    StartLiveTail: {
      // A caller with permission for only one of several groups must not read the others, so the ARN covers all groups.
      resource: ({ logGroupIdentifiers: identifiers }, context) =>
        identifiers.length === 1
          ? group({ logGroupIdentifier: identifiers[0] as string }, context)
          : `${logsArnPrefix(context)}*`,
      handle: (input, context) => {
        const groups = input.logGroupIdentifiers.map((logGroupIdentifier) => logGroupNameOf({ logGroupIdentifier }));
        return startLiveTail({ logs: store, tails }, { ...input, groups }, context);
      },
    },
    ...changingOperations({ store, clock, metricFilters }),
    ...lazyRows(filterOperations, async () => {
      const { metricFilterOperations } = await import("./metric-filters/index.ts");
      return metricFilterOperations({ logs: store, metricFilters: await metricFilters.get(), clock });
    }),
    ...lazyRows(queryOperations, async () => {
      const code = await import("./queries/index.ts");
      return code.queryOperations({ logs: store, queries: await queries.get() });
    }),
  };
  return {
    kind: "modelled",
    model: asServiceModel(logs),
    scope: "logs",
    iamPrefix: "logs",
    validationCodes: { json: "InvalidParameterException", query: "InvalidParameterException" },
    operations,
  } as const satisfies ModelledService;
}

interface MutableDependencies {
  readonly store: LogStreams;
  readonly clock: Clock;
  readonly metricFilters: GroupFilters;
}

function changingOperations({ store, clock, metricFilters }: MutableDependencies) {
  return {
    CreateLogGroup: {
      resource: group,
      unsupportedMembers: unkeptPromises,
      handle: ({ logGroupName: name }) => nothing(metricFilters.createGroup(name, () => store.createGroup(name))),
    },
    CreateLogStream: {
      resource: stream,
      handle: (input) => nothing(store.createStream(input.logGroupName, input.logStreamName)),
    },
    DeleteLogGroup: {
      resource: group,
      handle: ({ logGroupName: name }) => nothing(metricFilters.deleteGroup(name, () => store.deleteGroup(name))),
    },
    DeleteLogStream: {
      resource: stream,
      handle: (input) => nothing(store.deleteStream(input.logGroupName, input.logStreamName)),
    },
    PutRetentionPolicy: {
      resource: group,
      handle: ({ logGroupName, retentionInDays }) =>
        nothing(store.setRetention(logGroupName, checkRetentionDays(retentionInDays))),
    },
    DeleteRetentionPolicy: {
      resource: group,
      handle: (input) => nothing(store.setRetention(input.logGroupName, null)),
    },
    PutLogEvents: {
      resource: stream,
      handle: (input) => putEvents(store, input, clock.epochMs()),
    },
  } satisfies Partial<OperationRows<LogsOperations>>;
}

/** Awaits an operation that has no output, and returns an empty output. */
async function nothing(work: Promise<unknown>): Promise<Record<string, never>> {
  await work;
  return {};
}

async function describeGroups(
  { logs: store, metricFilters, listsGroup }: LogsDependencies,
  input: LogsInputs["DescribeLogGroupsRequest"],
  context: CallContext,
) {
  const { logGroupNamePattern: pattern, logGroupNamePrefix: prefix, logGroupClass } = input;
  if (pattern !== undefined && prefix !== undefined) {
    throw invalid("LogGroup name prefix and LogGroup name pattern are mutually exclusive parameters.");
  }
  const identifiers = input.logGroupIdentifiers?.map((logGroupIdentifier) => logGroupNameOf({ logGroupIdentifier }));
  const named = identifiers === undefined ? null : new Set(identifiers);
  // All groups have the standard class, so a request for another class finds none.
  const names = (logGroupClass ?? standardClass) === standardClass ? await store.groupNames(prefix ?? "") : [];
  const desired = names.filter(
    (name) =>
      (pattern === undefined || name.includes(pattern)) &&
      (named?.has(name) ?? true) &&
      (listsGroup?.(context.accessKeyId, name) ?? true),
  );
  const { page, next } = pageAfter(desired, (name) => name, logPageQuery("DescribeLogGroups", input));
  const groups = (await Promise.all(page.map((name) => store.group(name)))).filter((group) => group !== null);
  const printed = groups.map(async (group) => ({
    ...printGroup(group, context),
    metricFilterCount: await metricFilters.countOf(group.name),
  }));
  return { logGroups: await Promise.all(printed), nextToken: next };
}

function printGroup(group: LogGroup, context: CallContext) {
  const arn = `${logsArnPrefix(context)}${group.name}`;
  return {
    logGroupName: group.name,
    creationTime: Math.trunc(group.createdMs),
    retentionInDays: group.retentionDays ?? undefined,
    arn: `${arn}:*`,
    logGroupArn: arn,
    storedBytes: group.storedBytes,
    logGroupClass: standardClass,
  };
}

async function describeStreams(
  store: LogStreams,
  input: LogsInputs["DescribeLogStreamsRequest"],
  context: CallContext,
) {
  const group = logGroupNameOf(input);
  const { streams, nextToken } = await (input.orderBy === "LastEventTime"
    ? streamsByTime(store, group, input, context)
    : streamsByName(store, group, input));
  return {
    logStreams: streams.map((stream) => ({
      logStreamName: stream.name,
      creationTime: Math.trunc(stream.createdMs),
      firstEventTimestamp: stream.firstEventMs ?? undefined,
      lastEventTimestamp: stream.lastEventMs ?? undefined,
      lastIngestionTime: stream.lastEventMs ?? undefined,
      uploadSequenceToken: "1",
      arn: `${logsArnPrefix(context)}${group}:log-stream:${stream.name}`,
      storedBytes: 0,
    })),
    nextToken,
  };
}

/** Reads details only of the streams on the page. */
async function streamsByName(store: LogStreams, group: string, input: LogsInputs["DescribeLogStreamsRequest"]) {
  const names = await store.streamNames(group, input.logStreamNamePrefix ?? "");
  const isDescending = input.descending === true;
  const inOrder = isDescending ? names.toReversed() : names;
  const { page, next } = pageAfter(inOrder, (name) => name, logPageQuery("DescribeLogStreams", input, isDescending));
  const streams = await Promise.all(page.map((name) => store.stream(group, name)));
  return { streams: streams.filter((stream) => stream !== null), nextToken: next };
}

async function streamsByTime(
  store: LogStreams,
  group: string,
  input: LogsInputs["DescribeLogStreamsRequest"],
  { signal }: CallContext,
) {
  if (input.logStreamNamePrefix !== undefined) {
    throw invalid("Cannot order by LastEventTime with a logStreamNamePrefix.");
  }
  const found: LogStream[] = [];
  const names = await store.streamNames(group, "");
  for (let at = 0; at < names.length; at += streamsAtATime) {
    signal.throwIfAborted();
    const streams = names.slice(at, at + streamsAtATime).map((name) => store.stream(group, name));
    for (const stream of await Promise.all(streams)) if (stream !== null) found.push(stream);
  }
  const keyOf = ({ name, lastEventMs }: LogStream) => `${String(lastEventMs ?? 0).padStart(15, "0")} ${name}`;
  const sorted = found.toSorted((a, b) => compare(keyOf(a), keyOf(b)));
  const isDescending = input.descending === true;
  const inOrder = isDescending ? sorted.toReversed() : sorted;
  const { page, next } = pageAfter(inOrder, keyOf, logPageQuery("DescribeLogStreams", input, isDescending));
  return { streams: page, nextToken: next };
}

async function getEvents(store: LogStreams, input: LogsInputs["GetLogEventsRequest"], nowMs: number) {
  const group = logGroupNameOf(input);
  // A token contains only the group and the stream, so it remains valid with other times and in the other direction.
  const listing = { operation: "GetLogEvents", input: { group, stream: input.logStreamName } };
  const page = await store.read(group, input.logStreamName, {
    startTimeMs: input.startTime ?? null,
    endTimeMs: input.endTime ?? null,
    startFromHead: input.startFromHead ?? false,
    eventsMax: input.limit ?? eventsPerPage,
    token: input.nextToken === undefined ? null : storedToken(listing, input.nextToken),
  });
  return {
    events: page.events.map(({ timestampMs, message }) => ({
      timestamp: timestampMs,
      message,
      ingestionTime: Math.min(timestampMs, nowMs),
    })),
    nextForwardToken: givenToken(listing, page.forwardToken),
    nextBackwardToken: givenToken(listing, page.backwardToken),
  };
}

const directionLength = 2;

/**
 * Returns the part of a client's token that the store issued, with its prefix `f/` or `b/` for the direction. The other
 * part of the token identifies the stream.
 */
const givenToken = (listing: Listing, token: string) =>
  token.slice(0, directionLength) + pageToken(listing, token.slice(directionLength));

const storedToken = (listing: Listing, token: string) =>
  token.slice(0, directionLength) + positionOfToken(listing, token.slice(directionLength), invalidLogToken);

async function filter(
  store: LogStreams,
  input: LogsInputs["FilterLogEventsRequest"],
  { nowMs, nextTick }: { readonly nowMs: number; readonly nextTick: () => Promise<void> },
) {
  const group = logGroupNameOf(input);
  if (input.logStreamNames !== undefined && input.logStreamNamePrefix !== undefined) {
    throw invalid("LogStreamNames and LogStreamNamePrefix cannot be used together.");
  }
  const known = await store.streamNames(group, input.logStreamNamePrefix ?? "");
  const desired = input.logStreamNames === undefined ? null : new Set(input.logStreamNames);
  const streams = known.filter((name) => desired === null || desired.has(name));
  if (desired !== null && streams.length < desired.size) {
    throw new AwsError("ResourceNotFoundException", "The specified log stream does not exist.");
  }
  const listing = { operation: "FilterLogEvents", input };
  const { events, next } = await filterEvents(store, {
    group,
    streams: streams.slice(0, searchedStreamsMax),
    startTimeMs: input.startTime ?? 0,
    endTimeMs: input.endTime === undefined ? null : input.endTime + 1,
    matches: await createMessageMatcher(input.filterPattern),
    eventsMax: input.limit ?? eventsPerPage,
    after: input.nextToken === undefined ? null : positionOfToken(listing, input.nextToken, invalidLogToken),
    nextTick,
  });
  return {
    events: events.map(({ stream, timestampMs, message, id }) => ({
      logStreamName: stream,
      timestamp: timestampMs,
      message,
      ingestionTime: Math.min(timestampMs, nowMs),
      eventId: `${id}${stream}`,
    })),
    searchedLogStreams: [],
    nextToken: next === null ? undefined : pageToken(listing, next),
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
