import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { RootKey } from "./owner-keys.ts";

/**
 * Returns whether a request sends one of the keys as HTTP basic authentication: key id and secret. Prometheus scrapers
 * authenticate this way.
 */
export function hasOwnerKey({ headers }: Pick<IncomingMessage, "headers">, keys: readonly RootKey[]): boolean {
  const input = /^Basic ([A-Za-z0-9+/]{1,2048}={0,2})$/i.exec(headers.authorization ?? "")?.[1];
  if (input === undefined) return false;
  const digest = digestOf(Buffer.from(input, "base64").toString());
  // Compares with every key, each in constant time, so that the response time does not reveal a key.
  return (
    keys.filter((key) => timingSafeEqual(digest, digestOf(`${key.accessKeyId}:${key.secretAccessKey}`))).length > 0
  );
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
