import type { IncomingMessage, ServerResponse } from "node:http";
import { AwsError, type Clock } from "@galatea/base";
import type { BucketStore } from "@galatea/hosting/objects";
import { decodeComponent, pathOf, rawQueryOf, type SignedPayload } from "../../signing/index.ts";
import type { CallContext } from "../../wire/index.ts";
import type { ObjectReservation } from "./object-writers.ts";

/** One S3 request, parsed and authenticated. */
export interface S3Request {
  readonly method: string;
  /** The bucket; "" for a request to the service itself. */
  readonly bucket: string;
  /** The object's key; "" for a request to the bucket itself. */
  readonly key: string;
  readonly query: ReadonlyMap<string, string>;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly payload: SignedPayload;
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  readonly context: CallContext;
  readonly store: BucketStore;
  /** Reserves space for a write of `byteLength` bytes; null: unknown. Throws if the caller would exceed its quota. */
  readonly reserve: (byteLength: number | null) => Promise<ObjectReservation>;
  /** Returns whether a listing of the bucket shows a key to the caller. Null: the listing shows all keys. */
  readonly isListed: ((key: string) => boolean) | null;
  readonly clock: Clock;
}

export interface S3Address {
  readonly bucket: string;
  readonly key: string;
  readonly query: ReadonlyMap<string, string>;
}

/**
 * Parses a path-style address, or `bucket.domain` if a domain is configured. The key is the decoded path as it is: dots
 * and double slashes are not normalised.
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

/** Decodes a query value. A plus becomes a space, because clients that submit forms send it; SDKs send %2B and %20. */
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

/** Parses an integer of a query or header. Throws S3's error if it is not within the limits. */
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
