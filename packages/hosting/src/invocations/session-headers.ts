import { AwsError } from "@galatea/base";

/** What an invocation says in place of a session's id to have one opened. */
export const newSession = "NEW_SESSION";

/** A session that a model has opened. */
export interface OpenedSession {
  readonly id: string;
  /** By the platform's clock. */
  readonly expiresMs: number;
  /** As the model said it. */
  readonly text: string;
}

const openedCharsMax = 256;
const openedShape =
  /^([a-zA-Z0-9](?:-*[a-zA-Z0-9])*);\sExpires=([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)$/;

/** Null for what is no session: an id, and a time at which it expires. */
export function readOpenedSession(text: string): OpenedSession | null {
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
