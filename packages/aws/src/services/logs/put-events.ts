import type { LogsInputs } from "../../spec/gen/logs.ts";
import type { LogStreams } from "@galatea/hosting";
import { logParameterError as invalid } from "./log-names.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** Maximum size of one call. Each event counts with its bytes plus `eventOverheadBytes`, as in CloudWatch Logs. */
const batchBytesMax = 1024 * 1024;
const eventOverheadBytes = 26;
const batchSpanMs = dayMs;
/** Maximum time of an event after and before the current time. */
const aheadMs = 2 * hourMs;
const behindMs = 14 * dayMs;

type Event = LogsInputs["InputLogEvent"];

/** Writes the events with valid times; returns the indexes of the others. */
export async function putEvents(store: LogStreams, input: LogsInputs["PutLogEventsRequest"], nowMs: number) {
  const { logGroupName: group, logStreamName: stream, logEvents: events } = input;
  checkBatch(events);
  const retentionDays = await store.retentionDays(group);
  const keptMs = retentionDays === null ? -Infinity : nowMs - retentionDays * dayMs;
  const tooOldCount = countBefore(events, nowMs - behindMs);
  const expiredCount = countBefore(events, keptMs);
  const tooNewFrom = countBefore(events, nowMs + aheadMs + 1);
  const accepted = events.slice(Math.max(tooOldCount, expiredCount), tooNewFrom);
  await store.append(
    group,
    stream,
    accepted.map(({ timestamp, message }) => ({ timestampMs: timestamp, message })),
  );
  const rejected = {
    tooNewLogEventStartIndex: tooNewFrom < events.length ? tooNewFrom : undefined,
    tooOldLogEventEndIndex: tooOldCount > 0 ? tooOldCount : undefined,
    expiredLogEventEndIndex: expiredCount > 0 ? expiredCount : undefined,
  };
  const isRejected = Object.values(rejected).some((index) => index !== undefined);
  return { nextSequenceToken: "1", rejectedLogEventsInfo: isRejected ? rejected : undefined };
}

function checkBatch(events: readonly Event[]): void {
  let bytes = 0;
  for (const [index, { timestamp, message }] of events.entries()) {
    if (timestamp < (events[index - 1]?.timestamp ?? 0)) {
      throw invalid("Log events in a single PutLogEvents request must be in chronological order.");
    }
    bytes += Buffer.byteLength(message) + eventOverheadBytes;
  }
  if (bytes > batchBytesMax) {
    throw invalid(`Upload too large: ${bytes} bytes exceeds limit of ${batchBytesMax}`);
  }
  if ((events.at(-1)?.timestamp ?? 0) - (events[0]?.timestamp ?? 0) > batchSpanMs) {
    throw invalid("The batch of log events in a single PutLogEvents request cannot span more than 24 hours.");
  }
}

/** Returns the number of events before a time. The events must be in ascending order of time. */
function countBefore(events: readonly Event[], timeMs: number): number {
  const found = events.findIndex(({ timestamp }) => timestamp >= timeMs);
  return found === -1 ? events.length : found;
}
