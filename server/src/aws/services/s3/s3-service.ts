import { systemClock, type Clock, type Logger } from "../../../base/index.ts";
import type { BucketStore } from "../../../blobs/index.ts";
import type { Authenticator, SignedPayload } from "../../../signing/index.ts";
import type { ObjectService } from "../../wire/index.ts";
import { refuseHeaders } from "./refused-headers.ts";
import { sendError } from "./replies.ts";
import { routeOf } from "./routes.ts";
import { headerRecord, parseAddress } from "./s3-request.ts";

export interface S3Options {
  readonly store: BucketStore;
  /** `bucket.<domain>` addresses buckets by host name; null: path style alone. */
  readonly domain: string | null;
  readonly logger: Logger;
  readonly clock?: Clock;
}

/** S3 over a store: authenticate, route, serve, and answer errors as S3 does. */
export function createS3Service(options: S3Options): ObjectService {
  const clock = options.clock ?? systemClock;
  return async (incoming, response, context) => {
    const headers = headerRecord(incoming);
    const { method = "GET", url = "/" } = incoming;
    try {
      const payload = payloadOf(context.authenticator, { method, url, headers: incoming.headers });
      const address = parseAddress(url, headers["host"], options.domain);
      refuseHeaders(headers, context.accountId);
      const request = {
        ...address,
        method,
        headers,
        payload,
        incoming,
        response,
        context,
        store: options.store,
        clock,
      };
      const route = routeOf(request);
      context.permit(`s3:${route.operation}`, { bucket: address.bucket, key: address.key });
      await route.serve(request);
    } catch (thrown) {
      sendError({ incoming, response, context, clock }, thrown, options.logger);
    }
  };
}

/** Open servers take the framing at its word and still hold a body to the hash it was sent with. */
function payloadOf(
  authenticator: Authenticator | null,
  request: Parameters<Authenticator["verify"]>[0],
): SignedPayload {
  if (authenticator !== null) return authenticator.verify(request, null).payload;
  const declared = request.headers["x-amz-content-sha256"];
  if (typeof declared === "string" && /^[0-9a-f]{64}$/.test(declared)) return { at: "sha256", hex: declared };
  const encoding = request.headers["content-encoding"] ?? "";
  const isFramed = String(declared).startsWith("STREAMING-") || encoding.toLowerCase().includes("aws-chunked");
  return isFramed ? { at: "unsigned-trailer" } : { at: "unsigned" };
}
