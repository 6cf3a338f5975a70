import type { IncomingMessage } from "node:http";

export interface RefusedCoding {
  readonly status: number;
  readonly message: string;
}

/**
 * Why a request's Transfer-Encoding is refused; null where there is none or it is `chunked`. Where a body ends must not be a matter of
 * opinion between a proxy and us, or one of them takes a body for a request: RFC 9112, section 6.3, asks for 400 where `chunked`
 * is not the last coding, and section 6.1 for 501 where codings that nobody here knows come before it.
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
