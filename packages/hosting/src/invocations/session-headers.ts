import { AwsError } from "@galatea/base";

/** Value of the session id header that opens a new session. */
export const newSessionId = "NEW_SESSION";

/** A session that a model has opened. */
export interface OpenedSession {
  readonly id: string;
  /** Expiry time that the model set, in epoch milliseconds. */
  readonly expiresMs: number;
  /** Value of the model's response header, unchanged. */
  readonly text: string;
}

const openedCharsMax = 256;
const openedShape =
  /^([a-zA-Z0-9](?:-*[a-zA-Z0-9])*);\sExpires=([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)$/;

/** Parses a session's id and expiry time from a model's header. Returns null for any other text. */
export function parseOpenedSession(text: string): OpenedSession | null {
  const [, id, expires = ""] = text.length > openedCharsMax ? [] : (openedShape.exec(text) ?? []);
  const expiresMs = Date.parse(expires);
  return id === undefined || Number.isNaN(expiresMs) ? null : { id, expiresMs, text };
}

export function sessionNotFound(id: string, endpointName: string): AwsError {
  const text =
    `Session ${id} not found for Request of endpoint ${endpointName}. ` +
    "It has expired, was closed, or the instance that it was on is gone.";
  return new AwsError("ValidationError", text);
}
