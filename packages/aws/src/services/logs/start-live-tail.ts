import { randomUUID } from "node:crypto";
import type { LogsInputs } from "../../spec/gen/logs.ts";
import type { CallContext } from "../../wire/index.ts";
import type { LiveTails, TailUpdate } from "./live-tail.ts";
import type { LogStreams } from "@galatea/hosting";
import { createMessageMatcher } from "./message-matcher.ts";
import { logParameterError as invalid } from "./log-names.ts";

type Input = LogsInputs["StartLiveTailRequest"];

/**
 * Starts a session. First checks everything that can fail, because an error cannot be sent as a plain response once the
 * event stream has begun.
 */
export async function startLiveTail(
  { logs: store, tails }: { readonly logs: LogStreams; readonly tails: LiveTails },
  input: Input & { readonly groups: readonly string[] },
  { accountId, requestId, signal }: CallContext,
) {
  const { groups, logStreamNames: names, logStreamNamePrefixes: prefixes } = input;
  if (names !== undefined && prefixes !== undefined) {
    throw invalid("logStreamNames and logStreamNamePrefixes cannot be used together.");
  }
  if (groups.length > 1 && (names ?? prefixes) !== undefined) {
    throw invalid("Log streams can be named only with exactly one log group.");
  }
  // Rejects if the group does not exist.
  for (const group of groups) await store.retentionDays(group);
  const known = names === undefined ? null : new Set(names);
  const tailed = {
    groups: new Set(groups),
    includesStream: (stream: string) =>
      (known?.has(stream) ?? true) && (prefixes?.some((prefix) => stream.startsWith(prefix)) ?? true),
    matches: await createMessageMatcher(input.logEventFilterPattern),
  };
  const updates = tails.open(tailed, signal);
  const start = { ...input, requestId, sessionId: randomUUID() };
  return { responseStream: eventsOf(start, updates, accountId) };
}

async function* eventsOf(start: object, updates: AsyncIterable<TailUpdate>, accountId: string) {
  yield { sessionStart: start };
  for await (const { events, isSampled } of updates) {
    const sessionResults = events.map(({ group, stream, timestampMs, ingestedMs, message }) => ({
      logStreamName: stream,
      logGroupIdentifier: `${accountId}:${group}`,
      message,
      timestamp: timestampMs,
      ingestionTime: ingestedMs,
    }));
    yield { sessionUpdate: { sessionMetadata: { sampled: isSampled }, sessionResults } };
  }
}
