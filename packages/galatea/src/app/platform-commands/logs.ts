import { readEvents } from "@galatea/aws/wire";
import { withPlatformClient, PlatformRequestError, type PlatformClient } from "../platform-client.ts";
import type { LogsOptions, Named } from "./flags.ts";
import { kindOf, recordKinds, type Kind } from "./listing.ts";
import { printableText } from "./table.ts";

interface LogLine {
  readonly timestamp: number;
  readonly logStreamName: string;
  readonly message: string;
}

/** The log group and streams of the containers of an endpoint, an inference component or a transform job. */
interface LogSource {
  readonly logGroupName: string;
  readonly logStreamNamePrefix?: string;
}

interface LiveUpdate {
  readonly sessionMetadata: { readonly sampled: boolean };
  readonly sessionResults: readonly LogLine[];
}

/** Maximum number of streams whose last lines are read. The most recently written streams are selected. */
const streamsMax = 10;

/**
 * Runs `galatea logs NAME`, which prints the last lines of the containers of an endpoint, component or job. With -f,
 * prints new lines, too.
 */
export function logs(options: Named<LogsOptions>): Promise<number> {
  return withPlatformClient("logs", options, async (client) => {
    const source = await sourceOf(client, options);
    // The session starts before the last lines are read, so that no line is missed.
    const live = options.follow ? await openLive(client, source) : null;
    const last = await lastLines(client, source, options.lines);
    await print(last);
    if (live === null) return 0;
    const known = new Set(last.map(textOf));
    for await (const { sessionMetadata, sessionResults } of updates(live)) {
      await print(sessionResults.filter((line) => !known.has(textOf(line))));
      // The first update contains all lines that were written before the last lines were read, so no later update can
      // repeat a line.
      known.clear();
      if (sessionMetadata.sampled)
        process.stderr.write("galatea logs: lines were skipped, because more were written than the platform sends\n");
      if (!process.stdout.writable) return 0;
    }
    process.stderr.write("galatea logs: the platform has ended the session\n");
    return 1;
  });
}

const sources: readonly { readonly kind: Kind; readonly of: (name: string) => LogSource }[] = [
  { kind: recordKinds.endpoints, of: (name) => ({ logGroupName: `/aws/sagemaker/Endpoints/${name}` }) },
  { kind: recordKinds.components, of: (name) => ({ logGroupName: `/aws/sagemaker/InferenceComponents/${name}` }) },
  {
    kind: recordKinds.jobs,
    of: (name) => ({ logGroupName: "/aws/sagemaker/TransformJobs", logStreamNamePrefix: `${name}/` }),
  },
];

/**
 * Returns the first source with that name that has lines, even if its record was deleted. Otherwise returns the source
 * of an existing record without lines.
 */
async function sourceOf(client: PlatformClient, { name, follow }: Named<LogsOptions>): Promise<LogSource> {
  for (const { of } of sources) if ((await streamsOf(client, of(name))).length > 0) return of(name);
  const kinds = sources.map(({ kind }) => kind);
  const found = await kindOf(client, name, kinds);
  if (!follow) throw new PlatformRequestError(`${found.word} '${name}' has written no lines yet`);
  const source = sources[kinds.indexOf(found)]!.of(name);
  // Creates the log group, because StartLiveTail rejects a group that does not exist.
  const { logGroupName } = source;
  await client.call("logs", "CreateLogGroup", { logGroupName }).catch((error: unknown) => {
    if (!(error instanceof PlatformRequestError && error.code === "ResourceAlreadyExistsException")) throw error;
  });
  return source;
}

/** Returns the names of the most recently written streams. Returns none if the group does not exist. */
async function streamsOf(client: PlatformClient, { logGroupName, logStreamNamePrefix }: LogSource): Promise<string[]> {
  const order =
    logStreamNamePrefix === undefined ? { orderBy: "LastEventTime", descending: true } : { logStreamNamePrefix };
  const input = { logGroupName, limit: streamsMax, ...order };
  try {
    const { logStreams } = await client.call<{ readonly logStreams: readonly { readonly logStreamName: string }[] }>(
      "logs",
      "DescribeLogStreams",
      input,
    );
    return logStreams.map(({ logStreamName }) => logStreamName);
  } catch (error) {
    if (error instanceof PlatformRequestError && error.code === "ResourceNotFoundException") return [];
    throw error;
  }
}

async function lastLines(client: PlatformClient, source: LogSource, count: number): Promise<readonly LogLine[]> {
  const { logGroupName } = source;
  const lines: LogLine[] = [];
  for (const logStreamName of await streamsOf(client, source)) {
    const { events } = await client.call<{ readonly events: readonly Omit<LogLine, "logStreamName">[] }>(
      "logs",
      "GetLogEvents",
      { logGroupName, logStreamName, limit: count, startFromHead: false },
    );
    for (const event of events) lines.push({ ...event, logStreamName });
  }
  return lines.toSorted((a, b) => a.timestamp - b.timestamp).slice(-count);
}

async function openLive(client: PlatformClient, { logGroupName, logStreamNamePrefix }: LogSource): Promise<Response> {
  const streams = logStreamNamePrefix === undefined ? {} : { logStreamNamePrefixes: [logStreamNamePrefix] };
  return await client.open("logs", "StartLiveTail", { logGroupIdentifiers: [logGroupName], ...streams });
}

async function* updates({ body }: Response): AsyncGenerator<LiveUpdate> {
  let bytes: Buffer = Buffer.alloc(0);
  for await (const chunk of body ?? []) {
    const { events, rest } = readEvents(Buffer.concat([bytes, chunk as Uint8Array]));
    bytes = rest;
    for (const { headers, payload } of events) {
      const isException = headers[":message-type"] === "exception";
      if (isException)
        throw new PlatformRequestError((JSON.parse(payload.toString()) as { readonly message: string }).message);
      if (headers[":event-type"] === "sessionUpdate") yield JSON.parse(payload.toString()) as LiveUpdate;
    }
  }
}

const textOf = ({ timestamp, logStreamName, message }: LogLine): string =>
  `${new Date(timestamp).toISOString()} ${logStreamName} ${printableText(message)}\n`;

/** Resolves when the reader of stdout has received the lines or has closed stdout. */
function print(lines: readonly LogLine[]): Promise<void> {
  return new Promise((resolve) => process.stdout.write(lines.map(textOf).join(""), () => resolve()));
}
