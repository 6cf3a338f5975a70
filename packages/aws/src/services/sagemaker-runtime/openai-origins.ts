import type { IncomingMessage, ServerResponse } from "node:http";
import { AwsError } from "@galatea/base";

/** How long a browser may believe what it was told of an origin. */
const seconds = 600;
/** What a page may ask to send: names of headers. */
const headerNames = /^[\w\-, ]{1,4096}$/;

/** Tells a browser that the page's origin may read the answer, where the operator allows it. Whether it may. */
export function allowOrigin(
  { headers }: IncomingMessage,
  response: ServerResponse,
  origins: ReadonlySet<string>,
): boolean {
  const { origin } = headers;
  if (origin === undefined || !origins.has(origin)) return false;
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", "x-request-id");
  response.setHeader("vary", "origin");
  return true;
}

/** What a browser asks before it lets a page's request go. */
export function answerPreflight(request: IncomingMessage, response: ServerResponse, isAllowed: boolean): Promise<void> {
  if (!isAllowed)
    throw new AwsError("origin_not_allowed", "Pages of this origin are not allowed here.", { statusFallback: 403 });
  const asked = request.headers["access-control-request-headers"];
  if (asked !== undefined && headerNames.test(asked)) response.setHeader("access-control-allow-headers", asked);
  response.setHeader("access-control-allow-methods", "GET, POST");
  response.setHeader("access-control-max-age", seconds);
  response.writeHead(204).end();
  return Promise.resolve();
}
