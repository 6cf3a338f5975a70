import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../../base/index.ts";
import type { StayingAwake } from "./service-row.ts";

/**
 * Well below the 30 s after which the most impatient of the SDKs (Java's) gives up reading, and with fewer than the 100 interim responses
 * that Python's http.client reads ahead of one answer in the ten minutes that a question is held at most. Most calls are answered before
 * the first, with whatever status they come to.
 */
const wakeEveryMs = 10_000;

const jsonTypes = /^application\/x-amz-json-1\.[01]/;

/** What proxies say of themselves. nginx hands an interim response of the server behind it on as the answer, and then nothing more. */
const proxyHeaders = ["via", "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/** How an answer is kept from being given up on: clients count how long no byte came, not how long an answer takes. */
export function awakening(request: IncomingMessage, response: ServerResponse, clock: Clock): StayingAwake {
  return { blanks: blanks(request, response, clock), interims: interims(request, response, clock) };
}

/** JSON may begin with blanks. */
function blanks(request: IncomingMessage, response: ServerResponse, clock: Clock): StayingAwake["blanks"] {
  const [contentType] = jsonTypes.exec(request.headers["content-type"] ?? "") ?? [];
  if (contentType === undefined) return null;
  return () =>
    repeated(response, clock, () => {
      if (!response.headersSent) response.writeHead(200, { "Content-Type": contentType });
      response.write(" ");
    });
}

/** HTTP/1.0 knows none. */
function interims(request: IncomingMessage, response: ServerResponse, clock: Clock): StayingAwake["interims"] {
  if (request.httpVersion !== "1.1" || proxyHeaders.some((name) => request.headers[name] !== undefined)) return null;
  return () =>
    repeated(response, clock, () => {
      if (!response.headersSent) response.writeContinue();
    });
}

function repeated(response: ServerResponse, clock: Clock, wake: () => void): Disposable {
  let timer: Disposable;
  const again = (): void => {
    if (response.destroyed || response.writableEnded) return;
    wake();
    timer = clock.timer(wakeEveryMs, again);
  };
  timer = clock.timer(wakeEveryMs, again);
  return { [Symbol.dispose]: () => timer[Symbol.dispose]() };
}
