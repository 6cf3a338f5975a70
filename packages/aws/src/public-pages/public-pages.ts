import type { IncomingMessage, ServerResponse } from "node:http";
import { AwsError, type Logger } from "@galatea/base";
import type { LogEvent, LogStream, LogStreams } from "@galatea/hosting";
import type { PlatformMetrics } from "@galatea/hosting/exposition";
import { credentialScope, pathOf } from "../signing/index.ts";
import type { TopicPages } from "../topic-delivery/index.ts";
import { unsignedAccess, type UnsignedAccess } from "../unsigned-access/index.ts";
import type { Gateway } from "../wire/index.ts";
import { acceptsHtml, statusPageHeaders } from "@galatea/base/status-page";
import type { LogLinks } from "./log-links.ts";
import { platformPage, signInQuery, type PlatformPageOptions } from "./platform-page.ts";

export interface PublicPagesOptions extends PlatformPageOptions {
  readonly gateway: Gateway;
  /** Returns the error text if the gateway rejects a request because of its host or origin, else null. */
  readonly rejectionText: (request: IncomingMessage) => string | null;
  readonly metrics: PlatformMetrics;
  /** The metrics of endpoints and CloudWatch's series as Prometheus text. */
  readonly series: () => Promise<string>;
  /** Returns whether a request has an owner's key as HTTP basic authentication. */
  readonly hasOwnerKey: (request: IncomingMessage) => boolean;
  readonly links: LogLinks;
  readonly logs: LogStreams;
  readonly logger: Logger;
  /** True if the platform verifies no signatures. */
  readonly isOpen: boolean;
  readonly topics: TopicPages;
}

interface Page {
  readonly status: number;
  readonly type: string;
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const plain = "text/plain; charset=utf-8";
const prometheus = "text/plain; version=0.0.4; charset=utf-8";
/** Maximum number of streams on a log group's page. The most recently written streams are shown. */
const streamsMax = 10;
const linesMax = 500;

/**
 * Serves `/` for browsers, `/ping` and `/health` for probes, `/metrics` for Prometheus, and the links in errors and
 * messages. `unsignedAccess` decides which callers may read `/metrics`. The gateway handles everything else, and every
 * signed request, because a bucket may be called `metrics`.
 */
export function publicPages(options: PublicPagesOptions): Gateway {
  const { gateway, metrics } = options;
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    response.once("close", () => metrics.countRequest(response.headersSent ? response.statusCode : 0));
    const found = pageOf(options, request);
    if (found === null) return gateway.handle(request, response);
    void found
      .catch((error: unknown): Page => {
        if (error instanceof AwsError) return { status: 404, type: plain, text: `${error.message}\n` };
        options.logger.error("a page request failed", { error: String(error) });
        return { status: 500, type: plain, text: "The platform's log has the details.\n" };
      })
      .then((page) => (page === null ? gateway.handle(request, response) : send(request, response, page)));
  };
  return {
    handle,
    attach(server) {
      server.on("request", handle).on("checkContinue", handle);
    },
  };
}

/** Returns null for a request that the gateway handles; resolves with null if the page does not exist. */
function pageOf(options: PublicPagesOptions, request: IncomingMessage): Promise<Page | null> | null {
  const { method, url = "/", headers } = request;
  // Most requests are invocations; this cheap check of the method and path lets them skip the rest.
  if (method !== "GET" && method !== "HEAD") return null;
  const path = pathOf(url);
  const isLogs = path.startsWith("/logs/") && url.includes("token=");
  const isOfTopics = path.startsWith("/SimpleNotificationService-") || url.startsWith("/?Action=");
  const isHome = (url === "/" || url === `/?${signInQuery}`) && acceptsHtml(headers.accept);
  if (!isHome && !isLogs && !isOfTopics && path !== "/ping" && path !== "/health" && path !== "/metrics") return null;
  if (credentialScope({ method, url, headers }) !== null) return null;
  const refusal = options.rejectionText(request);
  if (refusal !== null) return page(403, `${refusal}\n`);
  if (isLogs) return logPage(options, url);
  if (isOfTopics) return topicPage(options, url);
  if (path === "/ping") return page(200, "");
  const access = unsignedAccess({
    // A proxy or a gateway on this machine passes requests of callers on other machines.
    remoteAddress: headers.via === undefined ? request.socket.remoteAddress : undefined,
    isOpen: options.isOpen,
    hasOwnerKey: options.hasOwnerKey(request),
  });
  if (isHome) return homePage(options, access, url);
  if (path === "/health") {
    return page(200, healthText(access.confinementGaps ? options.unconfined() : null), "application/json");
  }
  if (access.endpointMetrics) return allMetrics(options);
  if (access.platformMetrics) return page(200, options.metrics.prometheusText(), prometheus);
  return page(403, "Metrics are available to programs of this machine only.\n");
}

/**
 * Returns the page with endpoint names for the owner, and with metrics only for local programs. Other callers receive
 * the sign-in response.
 */
async function homePage(options: PublicPagesOptions, access: UnsignedAccess, url: string): Promise<Page> {
  const { endpointMetrics: showsNames, platformMetrics: showsFigures } = access;
  if (!showsNames && (!showsFigures || url !== "/")) {
    const headers = { "WWW-Authenticate": `Basic realm="Galatea: access key ID and secret access key"` };
    return { status: 401, type: plain, text: "Sign in with the access key that `galatea env` prints.\n", headers };
  }
  const text = await platformPage(options, showsNames);
  return { status: 200, type: statusPageHeaders["Content-Type"], text, headers: statusPageHeaders };
}

/**
 * Resolves with null for an unsigned request that is not one of the links in SNS messages. The gateway then reports the
 * error.
 */
async function topicPage({ topics }: PublicPagesOptions, url: string): Promise<Page | null> {
  const found = await topics(url);
  return found === null ? null : page(200, found.text, found.type);
}

async function allMetrics({ metrics, series }: PublicPagesOptions): Promise<Page> {
  return { status: 200, type: prometheus, text: metrics.prometheusText() + (await series()) };
}

function healthText(unconfined: Readonly<Record<string, string>> | null): string {
  return `${JSON.stringify({ status: "ok", ...(unconfined === null ? {} : { unconfined }) })}\n`;
}

const page = (status: number, text: string, type: string = plain): Promise<Page> =>
  Promise.resolve({ status, text, type });

function send(request: IncomingMessage, response: ServerResponse, { status, type, text, headers }: Page): void {
  request.resume();
  const body = Buffer.from(text);
  response.writeHead(status, {
    "Content-Type": type,
    "Content-Length": body.byteLength,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    ...headers,
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

/** Returns the last lines of all of a group's streams, sorted by time. */
async function logPage({ links, logs }: PublicPagesOptions, url: string): Promise<Page> {
  const group = links.groupOf(url);
  if (group === null)
    return page(403, "This link is invalid or has expired. Read the log group with the CloudWatch Logs API instead.\n");
  const all: LogStream[] = [];
  for (const name of await logs.streamNames(group, "")) {
    const stream = await logs.stream(group, name);
    if (stream !== null) all.push(stream);
  }
  const streams = all.toSorted((a, b) => (b.lastEventMs ?? 0) - (a.lastEventMs ?? 0)).slice(0, streamsMax);
  const read = { startTimeMs: null, endTimeMs: null, startFromHead: false, eventsMax: linesMax, token: null };
  const lines: { readonly stream: string; readonly event: LogEvent }[] = [];
  for (const { name } of streams) {
    const { events } = await logs.read(group, name, read);
    for (const event of events) lines.push({ stream: name, event });
  }
  lines.sort((a, b) => a.event.timestampMs - b.event.timestampMs);
  const text = lines
    .slice(-linesMax)
    .map(({ stream, event }) => `${new Date(event.timestampMs).toISOString()} ${stream} ${event.message}\n`);
  return page(200, `${group}, the last ${text.length} lines\n\n${text.join("")}`);
}
