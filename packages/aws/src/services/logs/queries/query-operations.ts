import { AwsError } from "@galatea/base";
import { parseQuery, QueryError, queryRowsMax } from "../../../insights/index.ts";
import type { LogsInputs, LogsOperations } from "../../../spec/gen/logs.ts";
import { pageAfter, type CallContext, type OperationRows } from "../../../wire/index.ts";
import type { LogQueries, LogQuery } from "./log-queries.ts";
import type { LogStreams } from "@galatea/hosting";
import { logsArnPrefix, logGroupNameOf, invalidLogToken, logParameterError as invalid } from "../log-names.ts";

export interface QueryDependencies {
  readonly logs: LogStreams;
  readonly queries: LogQueries;
}

type StartInput = LogsInputs["StartQueryRequest"];

const groupsMax = 50;
const queriesPerPage = 1000;
const language = "CWLI";
/** Maximum time in seconds. Some clients send milliseconds, so larger values are read as milliseconds. */
const secondsMax = 100_000_000_000;

const ownLanguage = { path: "queryLanguage", harmless: (value: unknown) => value === language };

export function queryOperations(dependencies: QueryDependencies) {
  const { queries } = dependencies;
  return {
    StartQuery: {
      // A caller with permission for only one of several groups must not query the others, so the ARN covers all
      // groups.
      resource: (input, context) => {
        const [first = "", ...others] = groupsOf(input);
        return others.length === 0 ? `${logsArnPrefix(context)}${first}` : `${logsArnPrefix(context)}*`;
      },
      unsupportedMembers: [ownLanguage],
      handle: (input, context) => start(dependencies, input, context),
    },
    GetQueryResults: {
      handle: async ({ queryId }) => printResults(existing(queries, queryId)),
    },
    StopQuery: {
      handle: async ({ queryId }) => {
        existing(queries, queryId);
        if (queries.stop(queryId)) return { success: true };
        throw invalid("The specified query has already ended.");
      },
    },
    DescribeQueries: {
      resource: (_, context) => `${logsArnPrefix(context)}*`,
      unsupportedMembers: [ownLanguage],
      handle: async (input) => describe(queries, input),
    },
  } satisfies Partial<OperationRows<LogsOperations>>;
}

async function start({ logs, queries }: QueryDependencies, input: StartInput, { accountId }: CallContext) {
  const groups = groupsOf(input);
  if (groups.length > groupsMax) throw invalid(`A query can have at most ${groupsMax} log groups.`);
  const [startMs, endMs] = [milliseconds(input.startTime), milliseconds(input.endTime)];
  if (endMs < startMs) throw invalid("The endTime must not be before the startTime.");
  const limit = input.limit ?? queryRowsMax;
  if (limit > queryRowsMax) throw invalid(`A query can return at most ${queryRowsMax} rows in this server.`);
  checkText(input.queryString);
  // Rejects if the group does not exist.
  for (const group of groups) await logs.retentionDays(group);
  const queryId = queries.start({ text: input.queryString, groups, accountId, startMs, endMs: endMs + 1, limit });
  return { queryId };
}

function checkText(text: string): void {
  try {
    parseQuery(text);
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    const { message, startOffset, endOffset } = error;
    const location = { startCharOffset: startOffset, endCharOffset: endOffset };
    const members = { queryCompileError: { location, message } };
    throw new AwsError("MalformedQueryException", `${message} (character ${startOffset})`, { members });
  }
}

function groupsOf(input: StartInput): readonly string[] {
  const { logGroupName: name, logGroupNames: names, logGroupIdentifiers: identifiers } = input;
  const value = [name === undefined ? undefined : [name], names, identifiers].filter((each) => each !== undefined);
  const [groups, ...others] = value;
  if (groups === undefined || others.length > 0 || groups.length === 0) {
    throw invalid("Exactly one of logGroupName, logGroupNames and logGroupIdentifiers must be given.");
  }
  return [...new Set(groups.map((each) => logGroupNameOf({ logGroupIdentifier: each })))];
}

const milliseconds = (time: number) => (time < secondsMax ? time * 1000 : time);

function printResults(query: LogQuery) {
  const { state, statistics, input: requested } = query;
  const { rows, recordsMatched } = state.at === "Complete" ? state.result : { rows: [], recordsMatched: 0 };
  return {
    queryLanguage: language,
    results: rows.map((row) => row.map(([field, value]) => ({ field, value }))),
    statistics: {
      ...statistics,
      recordsMatched,
      estimatedRecordsSkipped: 0,
      estimatedBytesSkipped: 0,
      logGroupsScanned: requested.groups.length,
      resultCount: rows.length,
    },
    status: state.at,
  };
}

function describe(queries: LogQueries, input: LogsInputs["DescribeQueriesRequest"]) {
  const desired = queries
    .list()
    .filter(({ state }) => input.status === undefined || state.at === input.status)
    .filter(
      ({ input: requested }) => input.logGroupName === undefined || requested.groups.includes(input.logGroupName),
    );
  const keyOf = (query: LogQuery) => `${String(query.createdMs).padStart(15, "0")} ${query.id}`;
  const newestFirst = desired.toSorted((a, b) => (keyOf(a) < keyOf(b) ? 1 : -1));
  const { nextToken: token, maxResults: countMax } = input;
  const listing = { operation: "DescribeQueries", input };
  const requested = { countMax, pageMax: queriesPerPage, token, isDescending: true, listing, refusal: invalidLogToken };
  const { page, next } = pageAfter(newestFirst, keyOf, requested);
  return {
    queries: page.map(({ id, input: requested, state, createdMs, endedMs, statistics }) => ({
      queryLanguage: language,
      queryId: id,
      queryString: requested.text,
      status: state.at,
      createTime: createdMs,
      logGroupName: requested.groups.length === 1 ? requested.groups[0] : undefined,
      queryDuration: endedMs === null ? undefined : endedMs - createdMs,
      bytesScanned: statistics.bytesScanned,
    })),
    nextToken: next,
  };
}

function existing(queries: LogQueries, id: string): LogQuery {
  const query = queries.get(id);
  if (query === null) throw new AwsError("ResourceNotFoundException", `There is no query ${id}.`);
  return query;
}
