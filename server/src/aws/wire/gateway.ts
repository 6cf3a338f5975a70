import { randomUUID } from "node:crypto";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { AwsError, ByteBudget, ByteLease, systemClock, type Clock, type Logger } from "../../base/index.ts";
import { Authenticator, SignatureFailure, type CredentialLookup, type CredentialScope } from "../../signing/index.ts";
import type { ModelledService } from "../spec/index.ts";
import { readHashedBody, withBody } from "./body.ts";
import { detectDestination, type Destination } from "./detect.ts";
import { signatureError } from "./errors.ts";
import type { CallContext, ObjectName, ObjectService, OperationHandlers, RawService } from "./handlers.ts";
import { respondError, serveOperation } from "./serve-operation.ts";

export interface GatewayServices {
  readonly operations: Readonly<Partial<Record<Exclude<ModelledService, "sagemaker-runtime">, OperationHandlers>>>;
  readonly runtime?: RawService;
  readonly s3?: ObjectService;
}

export interface GatewayLimits {
  /** Of an operation's request, before and after decompression. */
  readonly operationBodyBytesMax: number;
  /** Of a runtime request that has to be held to verify its signature. */
  readonly signedBodyBytesMax: number;
}

export interface GatewayOptions {
  readonly services: GatewayServices;
  /** Null: open, nothing is verified. */
  readonly credentials: CredentialLookup | null;
  /** Whether the owner of a proven key may do that; without it everybody may do everything. */
  readonly permits?: (accessKeyId: string, action: string, object: ObjectName | null) => boolean;
  readonly regionDefault: string;
  readonly accountIdDefault: string;
  readonly limits?: Partial<GatewayLimits>;
  /** The sentence with which a request is refused before anything else of it is looked at, or null. */
  readonly refuses?: (request: IncomingMessage) => string | null;
  /** For the bodies and answers that are held; without it they are bounded one by one. */
  readonly requestMemory?: ByteBudget;
  readonly logger: Logger;
  readonly clock?: Clock;
}

export interface Gateway {
  /** Serves one request; never rejects. For `server.on("request")` and `server.on("checkContinue")` alike. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** Registers both. */
  attach(server: Server): void;
}

const limitsDefault: GatewayLimits = { operationBodyBytesMax: 4 * 2 ** 20, signedBodyBytesMax: 32 * 2 ** 20 };

/** One handler for every AWS API of the platform. */
export function createGateway(options: GatewayOptions): Gateway {
  const clock = options.clock ?? systemClock;
  const limits = { ...limitsDefault, ...options.limits };
  const authenticator = options.credentials === null ? null : new Authenticator(options.credentials, clock);
  const requestMemory = options.requestMemory ?? new ByteBudget(Infinity);
  const gateway: GatewayState = { ...options, requestMemory, limits, authenticator };
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    serve(gateway, request, response).catch((error: unknown) => {
      options.logger.error("a request ended without an answer", { error: String(error) });
      response.destroy();
    });
  };
  return {
    handle,
    attach(server) {
      server.on("request", handle);
      server.on("checkContinue", handle);
    },
  };
}

export interface GatewayState extends GatewayOptions {
  readonly requestMemory: ByteBudget;
  readonly limits: GatewayLimits;
  readonly authenticator: Authenticator | null;
}

async function serve(gateway: GatewayState, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { destination, scope } = detectDestination(request);
  const aborter = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) aborter.abort(new AwsError("RequestCanceled", "The client closed the connection"));
  });
  const memory = new ByteLease(gateway.requestMemory);
  response.once("close", () => memory[Symbol.dispose]());
  const context = contextOf(gateway, scope, { signal: aborter.signal, memory });
  // What is answered here is data, never a page: a browser neither guesses its type nor runs what is in it.
  response.setHeader("X-Content-Type-Options", "nosniff");
  const refusal = gateway.refuses?.(request) ?? null;
  if (refusal !== null) return refuse(gateway, { destination, response, context }, refusal);
  if (destination.at === "s3" && gateway.services.s3 !== undefined) {
    response.setHeader("x-amz-request-id", context.requestId);
    response.setHeader("Content-Security-Policy", "sandbox; default-src 'none'");
    return gateway.services.s3(request, response, { ...context, authenticator: gateway.authenticator });
  }
  response.setHeader("x-amzn-RequestId", context.requestId);
  if (request.headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
  if (destination.at === "runtime") return serveRuntime(gateway, request, response, context);
  return serveOperation(gateway, { destination: known(gateway, destination), request, response, context });
}

/** In the protocol of who asked, so that its client shows the sentence. */
function refuse(
  gateway: GatewayState,
  { destination, response, context }: { destination: Destination; response: ServerResponse; context: CallContext },
  text: string,
): void {
  const isXml = destination.at === "s3" || destination.at === "form";
  const protocol = isXml ? "query" : destination.at === "runtime" ? "rest-json" : "json";
  const error = new AwsError(isXml ? "AccessDenied" : "AccessDeniedException", text, { statusFallback: 403 });
  respondError(gateway, { response, context, service: "", protocol, operation: "" }, error);
}

function contextOf(
  gateway: GatewayState,
  scope: CredentialScope | null,
  call: Pick<CallContext, "signal" | "memory">,
): CallContext {
  const accessKeyId = scope?.accessKeyId ?? null;
  const credential = accessKeyId === null ? undefined : gateway.credentials?.(accessKeyId);
  // An access key of twelve digits names its account, as other self-hosted clouds have it.
  const named = accessKeyId !== null && /^\d{12}$/.test(accessKeyId) ? accessKeyId : gateway.accountIdDefault;
  const region = scope === null || scope.region === "" ? gateway.regionDefault : scope.region;
  const permit = (action: string, object?: ObjectName) => {
    if (gateway.authenticator === null || accessKeyId === null) return;
    if (gateway.permits?.(accessKeyId, action, object ?? null) ?? true) return;
    const resource = object === undefined ? "*" : `arn:aws:s3:::${object.bucket}/${object.key}`;
    const text = `User: ${accessKeyId} is not authorized to perform: ${action} on resource: ${resource}`;
    throw new AwsError(action.startsWith("s3:") ? "AccessDenied" : "AccessDeniedException", text, {
      statusFallback: 403,
    });
  };
  const accountId = credential?.accountId ?? named;
  return { requestId: randomUUID(), region, accountId, accessKeyId, ...call, permit };
}

function known(gateway: GatewayState, destination: Destination): Destination {
  if (destination.at === "s3") return { at: "unknown", service: "s3", protocol: "json" };
  if (destination.at !== "operations" || destination.service === "sagemaker-runtime") return destination;
  if (gateway.services.operations[destination.service] !== undefined) return destination;
  return { at: "unknown", service: destination.service, protocol: destination.protocol };
}

async function serveRuntime(
  gateway: GatewayState,
  request: IncomingMessage,
  response: ServerResponse,
  context: CallContext,
): Promise<void> {
  try {
    if (gateway.services.runtime === undefined) {
      throw new AwsError("UnknownOperationException", "The service 'sagemaker-runtime' is not part of this server");
    }
    let verified = request;
    if (gateway.authenticator !== null) {
      const { method = "GET", url = "/", headers } = request;
      // Whoever has no key has no body held for it.
      gateway.authenticator.identify({ method, url, headers });
      const read = await readHashedBody(request, gateway.limits.signedBodyBytesMax, context.memory);
      gateway.authenticator.verify({ method, url, headers }, read.sha256Hex);
      context.permit("sagemaker:InvokeEndpoint");
      verified = withBody(request, read.body);
    }
    await gateway.services.runtime(verified, response, context);
  } catch (thrown) {
    const error = thrown instanceof SignatureFailure ? signatureError(thrown, "rest-json") : thrown;
    respondError(
      gateway,
      { response, context, service: "sagemaker-runtime", protocol: "rest-json", operation: "" },
      error,
    );
  }
}
