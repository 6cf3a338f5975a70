import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { RootKey } from "./owner-keys.ts";

/**
 * Returns whether a request has one of the keys as HTTP basic authentication, as scrapers send it: the key's id and its
 * secret.
 */
export function hasOwnerKey({ headers }: Pick<IncomingMessage, "headers">, keys: readonly RootKey[]): boolean {
  const given = /^Basic ([A-Za-z0-9+/]{1,2048}={0,2})$/i.exec(headers.authorization ?? "")?.[1];
  if (given === undefined) return false;
  const digest = digestOf(Buffer.from(given, "base64").toString());
  // Compares every key, each in constant time.
  return (
    keys.filter((key) => timingSafeEqual(digest, digestOf(`${key.accessKeyId}:${key.secretAccessKey}`))).length > 0
  );
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
