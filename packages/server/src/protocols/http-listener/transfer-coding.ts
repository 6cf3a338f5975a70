import type { IncomingMessage } from "node:http";

export interface TransferCodingError {
  readonly status: number;
  readonly message: string;
}

/**
 * Returns the error for a request's Transfer-Encoding; null if there is none or it is `chunked`. If a proxy and this server disagreed about
 * the end of a body, one of them would interpret a part of the body as a request. RFC 9112 therefore requires 400 if `chunked` is not the
 * last coding (section 6.3), and 501 for unknown codings before it (section 6.1).
 */
export function transferCodingError({ headers }: IncomingMessage): TransferCodingError | null {
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
