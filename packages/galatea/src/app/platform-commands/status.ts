import { findRunningPlatform } from "../../data-directory/index.ts";
import { withPlatformClient, PlatformRequestError, reporting, type PlatformClient } from "../platform-client.ts";
import type { StatusOptions } from "./flags.ts";
import { recordKinds, listed, type ListedRecord } from "./listing.ts";
import { tableText } from "./table.ts";

/** Maximum number of failures in the text output. The JSON output contains all of them. */
const failuresMax = 20;

interface PlatformStatus {
  readonly url: string;
  /** Process id of the platform; null if it runs on another machine or as another user. */
  readonly pid: number | null;
  readonly dataDirectory: string | null;
  readonly version: string | null;
  /** Number of records by kind and status. */
  readonly counts: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly failures: readonly (ListedRecord & { readonly kind: string })[];
}

/**
 * Runs `galatea status`, which prints what runs on a platform, and what has failed and why. With `--url`, prints the
 * models of a server.
 */
export function status(options: StatusOptions): Promise<number> {
  const { url } = options;
  if (url !== null) return reporting("status", () => serverStatus(url, options.json));
  return withPlatformClient("status", options, async (client) => {
    const found = await statusOf(client, options);
    process.stdout.write(options.json ? `${JSON.stringify(found, null, 2)}\n` : statusText(found));
    return 0;
  });
}

async function statusOf(client: PlatformClient, options: StatusOptions): Promise<PlatformStatus> {
  const running = findRunningPlatform(options, process.env);
  const counts: Record<string, Record<string, number>> = {};
  const failures: (ListedRecord & { readonly kind: string })[] = [];
  for (const kind of [recordKinds.endpoints, recordKinds.components, recordKinds.jobs]) {
    const of: Record<string, number> = {};
    for (const record of await listed(client, kind)) {
      const { status: at = "" } = record;
      of[at] = (of[at] ?? 0) + 1;
      if (at.endsWith("Failed")) failures.push({ kind: kind.word, ...record });
    }
    counts[`${kind.word}s`] = of;
  }
  return {
    url: client.platform.url,
    pid: running?.process.pid ?? null,
    dataDirectory: running?.dataDirectory ?? null,
    version: running?.version ?? null,
    counts,
    failures,
  };
}

function statusText({ url, pid, dataDirectory, version, counts, failures }: PlatformStatus): string {
  const lines = [
    `Galatea${version === null ? "" : ` ${version}`} is up at ${url}${pid === null ? "" : ` (process ${pid})`}`,
  ];
  if (dataDirectory !== null) lines.push(`  data: ${dataDirectory}`);
  for (const [kind, of] of Object.entries(counts)) {
    const states = Object.entries(of).map(([at, count]) => `${count} ${at}`);
    lines.push(`  ${kind}: ${states.length === 0 ? "none" : states.join(", ")}`);
  }
  const more = failures.length - failuresMax;
  const table = tableText(failures.slice(0, failuresMax), ["kind", "name", "status", "reason"]);
  const rest = more > 0 ? `and ${more} more: \`galatea status --json\` lists all\n` : "";
  return `${lines.join("\n")}\n${failures.length === 0 ? "" : `\n${table}${rest}`}`;
}

interface ServedModel {
  readonly name: string;
  readonly version?: string;
  readonly state?: string;
  readonly reason?: string;
}

/** Prints the models of a server with the KServe v2 protocol. */
async function serverStatus(url: string, isJson: boolean): Promise<number> {
  const server = (await requested(`${url}/v2`, "GET")) as { readonly name: string; readonly version: string };
  const models = (await requested(`${url}/v2/repository/index`, "POST")) as readonly ServedModel[];
  const found = { url, name: server.name, version: server.version, models };
  if (isJson) process.stdout.write(`${JSON.stringify(found, null, 2)}\n`);
  else {
    const table = tableText(models, ["name", "version", "state", "reason"]);
    process.stdout.write(
      `${server.name} ${server.version} is up at ${url}\n${models.length === 0 ? "  no models\n" : `\n${table}`}`,
    );
  }
  return 0;
}

async function requested(url: string, method: string): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(url, { method });
  } catch (cause) {
    const why = (cause as { readonly cause?: Error }).cause?.message ?? String(cause);
    throw new PlatformRequestError(`no server responds at ${url}: ${why}`, { cause });
  }
  if (!response.ok)
    throw new PlatformRequestError(`${url} responded with ${response.status}: it is not a \`galatea serve\``);
  return await response.json();
}
