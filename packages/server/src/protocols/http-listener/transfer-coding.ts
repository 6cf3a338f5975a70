import type { IncomingMessage } from "node:http";

export interface RefusedCoding {
  readonly status: number;
  readonly message: string;
}

/**
 * Returns the error for a request's Transfer-Encoding; null when there is none or it is `chunked`. A proxy and this server must agree on
 * the end of a body, or one of them takes a body for a request: RFC 9112, section 6.3, requires 400 when `chunked` is not the last
 * coding, and section 6.1 requires 501 when unknown codings precede it.
 */
export function refusedCoding({ headers }: IncomingMessage): RefusedCoding | null {
  const value = headers["transfer-encoding"];
  if (value === undefined || value === "chunked") return null;
  const codings = value
    .toLowerCase()
    .split(",")
    .map((coding) => coding.trim());
  if (codings.length === 1 && codings[0] === "chunked") return null;
  return { status: codings.at(-1) === "chunked" ? 501 : 400, message: codingText(value) };
}

const shownCharsMax = 100;

export function codingText(value: string): string {
  return (
    `Transfer-Encoding '${value.slice(0, shownCharsMax)}' is not supported: ` +
    "send 'chunked', or a Content-Length and no Transfer-Encoding"
  );
}
