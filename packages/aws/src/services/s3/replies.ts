import { AwsError, type Clock } from "@galatea/base";
import { SignatureFailure, type SignatureFailureReason } from "../../signing/index.ts";
import { closeIfUnread, writeXml, xmlDeclaration, type RawExchange, type XmlElements } from "../../wire/index.ts";
import type { S3Request } from "./s3-request.ts";

export const s3Namespace = "http://s3.amazonaws.com/doc/2006-03-01/";

export function sendXml(request: S3Request, name: string, content: XmlElements): void {
  const body = Buffer.from(writeXml(name, content, s3Namespace));
  request.response.writeHead(200, { "Content-Type": "application/xml", "Content-Length": body.byteLength });
  request.response.end(body);
}

export function sendEmpty(request: S3Request, status: number, headers: Readonly<Record<string, string>> = {}): void {
  const length = status === 204 || status === 304 ? {} : { "Content-Length": 0 };
  request.response.writeHead(status, { ...headers, ...length });
  request.response.end();
}

const firstSpaceMs = 10_000;

/**
 * Sends the result of a long operation, such as joining parts or copying. After ten seconds, the response begins with
 * status 200 and the XML declaration. Then a space follows every ten seconds, so that the client does not time out, and
 * then the document. As in S3, an error after that has status 200, too.
 */
export async function sendXmlWhenDone(
  request: S3Request,
  clock: Clock,
  name: string,
  work: () => Promise<XmlElements>,
): Promise<void> {
  const { response } = request;
  let timer: Disposable | null = null;
  const breathe = () => {
    if (!response.headersSent) {
      response.writeHead(200, { "Content-Type": "application/xml" });
      response.write(xmlDeclaration);
    } else response.write(" ");
    timer = clock.timer(firstSpaceMs, breathe);
  };
  timer = clock.timer(firstSpaceMs, breathe);
  try {
    const content = await work();
    if (!response.headersSent) return sendXml(request, name, content);
    response.end(writeXml(name, content, s3Namespace).slice(xmlDeclaration.length));
  } catch (error) {
    if (!response.headersSent || !(error instanceof AwsError)) throw error;
    response.end(errorXml(error, request.context.requestId, resourceOf(request)).slice(xmlDeclaration.length));
  } finally {
    timer[Symbol.dispose]();
  }
}

const resourceOf = (request: S3Request) => `/${request.bucket}${request.key === "" ? "" : `/${request.key}`}`;

function errorXml(error: AwsError, requestId: string, resource: string): string {
  const members = error.members as XmlElements;
  return writeXml(
    "Error",
    { Code: error.code, Message: error.message, ...members, Resource: resource, RequestId: requestId },
    null,
  );
}

const signatureErrors: Readonly<Record<SignatureFailureReason, readonly [code: string, status: number]>> = {
  missing: ["AccessDenied", 403],
  malformed: ["AuthorizationHeaderMalformed", 400],
  "unknown-key": ["InvalidAccessKeyId", 403],
  "bad-token": ["InvalidToken", 400],
  mismatch: ["SignatureDoesNotMatch", 403],
  "unsigned-headers": ["AccessDenied", 403],
  "wrong-service": ["AuthorizationHeaderMalformed", 400],
  expired: ["AccessDenied", 403],
  skewed: ["RequestTimeTooSkewed", 403],
};

export function s3Error(thrown: unknown): AwsError | null {
  if (thrown instanceof AwsError) return thrown;
  if (!(thrown instanceof SignatureFailure)) return null;
  const [code, statusFallback] = signatureErrors[thrown.reason];
  const message = thrown.reason === "missing" ? "Access Denied" : thrown.message;
  const { unsignedHeaders } = thrown;
  const members = unsignedHeaders.length > 0 ? { HeadersNotSigned: unsignedHeaders.join(", ") } : {};
  return new AwsError(code, message, { cause: thrown, statusFallback, members });
}

/** Sends an error as S3's XML. If the client is still sending, the connection ends with the response. */
export function sendError({ request: incoming, response, context, clock, logger }: RawExchange, thrown: unknown): void {
  const known = s3Error(thrown);
  if (known === null && !context.signal.aborted) {
    const text = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
    logger.error("an S3 request failed", { url: incoming.url, error: text });
  }
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const error =
    known ??
    new AwsError("InternalError", "We encountered an internal error. Please try again.", { statusFallback: 500 });
  const body = incoming.method === "HEAD" ? null : Buffer.from(errorXml(error, context.requestId, incoming.url ?? "/"));
  const headers: Record<string, string | number> =
    body === null ? {} : { "Content-Type": "application/xml", "Content-Length": body.byteLength };
  closeIfUnread(response, clock);
  response.writeHead(error.statusFallback, headers).end(body ?? undefined);
}
