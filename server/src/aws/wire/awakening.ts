import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../../base/index.ts";
import type { CallContext } from "./service-row.ts";

/**
 * Well below the 30 s after which the most impatient of the SDKs (Java's) gives up reading. Most calls are answered before the first blank,
 * with whatever status they come to.
 */
const blankEveryMs = 10_000;

const jsonTypes = /^application\/x-amz-json-1\.[01]/;

/**
 * How a JSON answer is kept from being given up on: JSON may begin with blanks, and clients count how long no byte came, not how long an
 * answer takes.
 */
export function awakening(request: IncomingMessage, response: ServerResponse, clock: Clock): CallContext["stayAwake"] {
  const [contentType] = jsonTypes.exec(request.headers["content-type"] ?? "") ?? [];
  if (contentType === undefined) return null;
  return () => {
    let timer: Disposable;
    const blank = (): void => {
      if (response.destroyed || response.writableEnded) return;
      if (!response.headersSent) response.writeHead(200, { "Content-Type": contentType });
      response.write(" ");
      timer = clock.timer(blankEveryMs, blank);
    };
    timer = clock.timer(blankEveryMs, blank);
    return { [Symbol.dispose]: () => timer[Symbol.dispose]() };
  };
}
