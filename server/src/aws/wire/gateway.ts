import { randomUUID } from "node:crypto";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { AwsError, systemClock, type Clock, type Logger } from "../../base/index.ts";
import {
  Authenticator,
  SignatureFailure,
  sha256Hex,
  type CredentialLookup,
  type CredentialScope,
} from "../../signing/index.ts";
import type { ModelledService } from "../spec/index.ts";
import { readBody, withBody } from "./body.ts";
import { detectDestination, type Destination } from "./detect.ts";
import { signatureError } from "./errors.ts";
import type { CallContext, ObjectService, OperationHandlers, RawService } from "./handlers.ts";
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
  readonly regionDefault: string;
  readonly accountIdDefault: string;
  readonly limits?: Partial<GatewayLimits>;
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
  const gateway: GatewayState = { ...options, limits, authenticator };
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
  readonly limits: GatewayLimits;
  readonly authenticator: Authenticator | null;
}

async function serve(gateway: GatewayState, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { destination, scope } = detectDestination(request);
  const aborter = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) aborter.abort(new AwsError("RequestCanceled", "The client closed the connection"));
  });
  const context = contextOf(gateway, scope, aborter.signal);
  if (destination.at === "s3" && gateway.services.s3 !== undefined) {
    response.setHeader("x-amz-request-id", context.requestId);
    return gateway.services.s3(request, response, { ...context, authenticator: gateway.authenticator });
  }
  response.setHeader("x-amzn-RequestId", context.requestId);
  if (request.headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
  if (destination.at === "runtime") return serveRuntime(gateway, request, response, context);
  return serveOperation(gateway, { destination: known(gateway, destination), request, response, context });
}

function contextOf(gateway: GatewayState, scope: CredentialScope | null, signal: AbortSignal): CallContext {
  const accessKeyId = scope?.accessKeyId ?? null;
  const credential = accessKeyId === null ? undefined : gateway.credentials?.(accessKeyId);
  // An access key of twelve digits names its account, as other self-hosted clouds have it.
  const named = accessKeyId !== null && /^\d{12}$/.test(accessKeyId) ? accessKeyId : gateway.accountIdDefault;
  const region = scope === null || scope.region === "" ? gateway.regionDefault : scope.region;
  return { requestId: randomUUID(), region, accountId: credential?.accountId ?? named, accessKeyId, signal };
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
      const body = await readBody(request, gateway.limits.signedBodyBytesMax);
      const { method = "GET", url = "/", headers } = request;
      gateway.authenticator.verify({ method, url, headers }, sha256Hex(body));
      verified = withBody(request, body);
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
