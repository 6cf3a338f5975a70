import { randomUUID } from "node:crypto";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { AwsError, ByteBudget, ByteLease, systemClock, LoopTurns } from "@galatea/base";
import { Authenticator, type CredentialScope } from "../signing/index.ts";
import { detectDestination } from "./detect.ts";
import type { GatewayOptions, GatewayState } from "./gateway-options.ts";
import { accessDenied, checkPermit } from "./permit.ts";
import { serveOperation } from "./serve-operation.ts";
import type { CallContext, RawExchange, RawService } from "./service-row.ts";
import { ServiceTable } from "./service-table.ts";

export interface Gateway {
  /** Serves one request; never rejects. For `server.on("request")` and `server.on("checkContinue")` alike. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** Registers both. */
  attach(server: Server): void;
}

const operationBodyBytesMaxDefault = 4 * 2 ** 20;

/** One handler for every AWS API of the platform. */
export function createGateway(options: GatewayOptions): Gateway {
  const clock = options.clock ?? systemClock;
  const gateway: GatewayState = {
    ...options,
    clock,
    table: new ServiceTable(options.services),
    operationBodyBytesMax: options.operationBodyBytesMax ?? operationBodyBytesMaxDefault,
    requestMemory: options.requestMemory ?? new ByteBudget(Infinity),
    turns: new LoopTurns(),
    authenticator: options.credentials === null ? null : new Authenticator(options.credentials, clock),
  };
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

async function serve(gateway: GatewayState, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { destination, scope } = detectDestination(gateway.table, request);
  const aborter = new AbortController();
  const { signal } = aborter;
  const memory = new ByteLease(gateway.requestMemory);
  response.once("close", () => {
    memory[Symbol.dispose]();
    if (!response.writableFinished) aborter.abort(new AwsError("RequestCanceled", "The client closed the connection"));
  });
  const userAgent = request.headers["user-agent"] ?? "";
  const turn = () => gateway.turns.next(signal);
  const context = contextOf(gateway, scope, { signal, memory, turn, userAgent });
  // What is answered here is data, never a page: a browser neither guesses its type nor runs what is in it.
  response.setHeader("X-Content-Type-Options", "nosniff");
  const { authenticator, logger, clock } = gateway;
  const exchange = { request, response, context, authenticator, logger, clock };
  if (destination.at === "raw") return serveRaw(gateway, destination.service, exchange);
  return serveOperation(gateway, destination, exchange);
}

function contextOf(
  gateway: GatewayState,
  scope: CredentialScope | null,
  call: Pick<CallContext, "signal" | "memory" | "turn" | "userAgent">,
): CallContext {
  const accessKeyId = scope?.accessKeyId ?? null;
  const credential = accessKeyId === null ? undefined : gateway.credentials?.(accessKeyId);
  // An access key of twelve digits names its account, as other self-hosted clouds have it.
  const named = accessKeyId !== null && /^\d{12}$/.test(accessKeyId) ? accessKeyId : gateway.accountIdDefault;
  const region = scope === null || scope.region === "" ? gateway.regionDefault : scope.region;
  const accountId = credential?.accountId ?? named;
  return { requestId: randomUUID(), region, accountId, accessKeyId, ...call };
}

async function serveRaw(gateway: GatewayState, service: RawService, exchange: RawExchange): Promise<void> {
  const { request, response, context } = exchange;
  const { protocol } = service;
  service.setHeaders(response, context.requestId);
  try {
    const refusal = gateway.refuses?.(request) ?? null;
    if (refusal !== null) throw accessDenied(protocol, refusal);
    const { action, resource, needs = [], handle } = await service.open(exchange);
    for (const each of needs) checkPermit(gateway, context, { action: each, resource: () => "*", protocol });
    checkPermit(gateway, context, { action, resource, protocol });
    await handle();
  } catch (thrown) {
    service.answerError(exchange, thrown);
  }
}
