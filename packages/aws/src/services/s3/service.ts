import type { BucketStore } from "@galatea/hosting/objects";
import type { Authenticator, SignedPayload } from "../../signing/index.ts";
import { openedCall, type RawService } from "../../wire/index.ts";
import { unlimitedReservation, type WriterQuotas } from "./object-writers.ts";
import { refuseHeaders } from "./refused-headers.ts";
import { sendError } from "./replies.ts";
import { findS3Operation, s3Operations } from "./routes.ts";
import { headerRecord, parseAddress } from "./s3-request.ts";

export interface S3Dependencies {
  readonly store: BucketStore;
  /** The domain of host names `bucket.<domain>` that address buckets; null: only path style is supported. */
  readonly s3Domain: string | null;
  /** The writers' quotas; absent: no writer has a quota. */
  readonly writers?: WriterQuotas;
  /**
   * Returns a test of whether a listing shows an object to the owner of the key. Null, the default: it shows all
   * objects.
   */
  readonly lists?: (
    accessKeyId: string | null,
  ) => ((object: { readonly bucket: string; readonly key: string }) => boolean) | null;
}

const scope = "s3";

/** S3 over a store: authenticates, routes and serves requests, and sends errors as S3 does. */
export function s3Service({ store, s3Domain, writers, lists }: S3Dependencies) {
  return {
    kind: "raw",
    protocol: "rest-xml",
    model: null,
    scope,
    operations: s3Operations,
    setHeaders(response, requestId) {
      response.setHeader("x-amz-request-id", requestId);
      // Prevents a browser from running scripts in an object.
      response.setHeader("Content-Security-Policy", "sandbox; default-src 'none'");
    },
    async open({ request: incoming, response, context, authenticator, clock }) {
      const headers = headerRecord(incoming);
      const { method = "GET", url = "/" } = incoming;
      const payload = payloadOf(authenticator, { method, url, headers: incoming.headers });
      const address = parseAddress(url, headers["host"], s3Domain);
      refuseHeaders(headers, context.accountId);
      const reserve = async (byteLength: number | null) =>
        (await writers?.reserve(context.accessKeyId, byteLength)) ?? unlimitedReservation;
      const { bucket } = address;
      const isShown = lists?.(context.accessKeyId) ?? null;
      const request = {
        ...address,
        isListed: isShown === null ? null : (key: string) => isShown({ bucket, key }),
        method,
        headers,
        payload,
        incoming,
        response,
        context,
        store,
        clock,
        reserve,
      };
      return openedCall(findS3Operation(request), request);
    },
    sendError: sendError,
  } as const satisfies RawService;
}

/**
 * Returns the framing and the expected hash of a body. Without authentication, uses the unverified values in the
 * headers.
 */
function payloadOf(
  authenticator: Authenticator | null,
  request: Parameters<Authenticator["verify"]>[0],
): SignedPayload {
  if (authenticator !== null) return authenticator.verify(request, null, scope).payload;
  const declared = request.headers["x-amz-content-sha256"];
  if (typeof declared === "string" && /^[0-9a-f]{64}$/.test(declared)) return { at: "sha256", hex: declared };
  const encoding = request.headers["content-encoding"] ?? "";
  const isFramed = String(declared).startsWith("STREAMING-") || encoding.toLowerCase().includes("aws-chunked");
  return isFramed ? { at: "unsigned-trailer" } : { at: "unsigned" };
}
