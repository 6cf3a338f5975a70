import type { IncomingMessage, ServerResponse } from "node:http";
import { AwsError } from "@galatea/base";

/** Seconds for which browsers may cache the permission of an origin. */
const seconds = 600;
/** Header names that a page may request to send. */
const headerNames = /^[\w\-, ]{1,4096}$/;

/**
 * Allows a browser to read the response if the operator allows the page's origin. Returns whether the origin is
 * allowed.
 */
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

/** Answers a browser's preflight request. */
export function sendPreflightResponse(
  request: IncomingMessage,
  response: ServerResponse,
  isAllowed: boolean,
): Promise<void> {
  if (!isAllowed)
    throw new AwsError("origin_not_allowed", "Pages of this origin are not allowed here.", { statusFallback: 403 });
  const requested = request.headers["access-control-request-headers"];
  if (requested !== undefined && headerNames.test(requested))
    response.setHeader("access-control-allow-headers", requested);
  response.setHeader("access-control-allow-methods", "GET, POST");
  response.setHeader("access-control-max-age", seconds);
  response.writeHead(204).end();
  return Promise.resolve();
}
