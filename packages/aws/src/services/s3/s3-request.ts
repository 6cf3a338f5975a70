import type { IncomingMessage, ServerResponse } from "node:http";
import { AwsError, type Clock } from "@galatea/base";
import type { BucketStore } from "@galatea/hosting/objects";
import { decodeComponent, pathOf, rawQueryOf, type SignedPayload } from "../../signing/index.ts";
import type { CallContext } from "../../wire/index.ts";
import type { ObjectReservation } from "./object-writers.ts";

/** One S3 request, parsed and authenticated. */
export interface S3Request {
  readonly method: string;
  /** "" for the service itself. */
  readonly bucket: string;
  /** "" for the bucket itself. */
  readonly key: string;
  readonly query: ReadonlyMap<string, string>;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly payload: SignedPayload;
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  readonly context: CallContext;
  readonly store: BucketStore;
  /** Reserves space for a write of so many bytes. Throws above the caller's quota. */
  readonly reserve: (byteLength: number | null) => Promise<ObjectReservation>;
  /** Returns whether a listing of the bucket shows a key to the caller; null: it shows all. */
  readonly isListed: ((key: string) => boolean) | null;
  readonly clock: Clock;
}

export interface S3Address {
  readonly bucket: string;
  readonly key: string;
  readonly query: ReadonlyMap<string, string>;
}

/**
 * Parses path style, or `bucket.domain` if a domain is configured. The key is the path's bytes: dots and double slashes
 * stay.
 */
export function parseAddress(url: string, host: string | undefined, domain: string | null): S3Address {
  const query = new Map(rawQueryOf(url).map(([name, value]) => [decodeComponent(name), decodeValue(value)]));
  const path = pathOf(url).replace(/^https?:\/\/[^/]*/, "");
  const hosted = hostedBucket(host, domain);
  const rest = path.replace(/^\//, "");
  if (hosted !== null) return { bucket: hosted, key: decodePath(rest), query };
  const slash = rest.indexOf("/");
  if (slash === -1) return { bucket: decodePath(rest), key: "", query };
  return { bucket: decodePath(rest.slice(0, slash)), key: decodePath(rest.slice(slash + 1)), query };
}

function hostedBucket(host: string | undefined, domain: string | null): string | null {
  const name = (host ?? "").replace(/:\d+$/, "").toLowerCase();
  return domain !== null && name.endsWith(`.${domain}`) ? name.slice(0, -domain.length - 1) : null;
}

/** Decodes a value of a query: a plus is a space for clients that send forms; SDKs send %2B and %20. */
const decodeValue = (text: string) => decodeComponent(text.replaceAll("+", "%20"));

function decodePath(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new AwsError("InvalidURI", "Couldn't parse the specified URI.", { cause });
  }
}

export function headerRecord(incoming: IncomingMessage): Record<string, string | undefined> {
  const record: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(incoming.headers)) {
    record[name] = Array.isArray(value) ? value.join(",") : value;
  }
  return record;
}

/** Parses a whole number of a query or header within limits, or throws S3's error. */
export function integerArgument(
  text: string | undefined,
  name: string,
  bounds: { fallback: number; max: number },
): number {
  if (text === undefined || text === "") return bounds.fallback;
  if (!/^\d{1,10}$/.test(text) || Number(text) > 2 ** 31 - 1) {
    throw new AwsError("InvalidArgument", `Argument ${name} must be an integer between 0 and 2147483647`, {
      members: { ArgumentName: name, ArgumentValue: text.slice(0, 64) },
    });
  }
  return Math.min(Number(text), bounds.max);
}
