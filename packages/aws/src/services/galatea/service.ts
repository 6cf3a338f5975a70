import type { IncomingMessage, ServerResponse } from "node:http";
import { AwsError, readToBuffer } from "@galatea/base";
import type { MetricStore } from "@galatea/base/metrics";
import { failureReason, hostingArn, type EndpointRecord, type Hosting } from "@galatea/hosting";
import { metricBatchPath, MetricBatches, parseMetricBatch } from "../../metric-batches/index.ts";
import { decodeComponent, pathOf, queryValue } from "../../signing/index.ts";
import {
  sendAwsError,
  anyResource,
  openedCall,
  verifiedRequest,
  type CallContext,
  type RawOperationRow,
  type RawService,
} from "../../wire/index.ts";
import { galateaModel, parseGalateaPath, type GalateaOperation } from "./model.ts";
import { stateChangeEvent } from "./state-change-event.ts";

export interface GalateaDependencies {
  readonly hosting: Hosting;
  readonly series: Pick<MetricStore, "record">;
}

interface GalateaCall {
  readonly endpointName: string;
  readonly url: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly context: CallContext;
}

/** Maximum size of a request body. The requests of these routes need only a few bytes. */
const bodyBytesMax = 4096;
/** Maximum size of a batch of metrics. */
const batchBytesMax = 4 * 2 ** 20;
/** Maximum duration of a long poll, in seconds. It is shorter than the read time-outs of clients. */
const waitSecondsMax = 25;
const eventsMax = 1000;
const eventsDefault = 100;
const batchTooLong = new AwsError("ValidationException", `A batch of metrics has at most ${batchBytesMax} bytes.`);
const validationCodes = { json: "ValidationException", query: "ValidationException" };

const scope = "sagemaker";

/** The platform's own HTTP routes, below /galatea/, with JSON responses. */
export function galateaService({ hosting, series }: GalateaDependencies) {
  const batches = new MetricBatches(series);
  const resource = ({ endpointName, context }: GalateaCall) => hostingArn("endpoint", endpointName, context);
  const operations: Readonly<Record<GalateaOperation, RawOperationRow<GalateaCall>>> = {
    StopEndpoint: {
      action: "galatea:StopEndpoint",
      resource,
      handle: async (call) => respond(call, endpointOf(await hosting.endpoints.stop(call.endpointName, call.context))),
    },
    StartEndpoint: {
      action: "galatea:StartEndpoint",
      resource,
      handle: async (call) => respond(call, endpointOf(await hosting.endpoints.start(call.endpointName, call.context))),
    },
    WatchEndpoint: {
      action: "galatea:WatchEndpoint",
      resource,
      async handle(call) {
        await hosting.waitUntilStable(call.endpointName, waitOf(call));
        respond(call, endpointOf(await hosting.endpoints.find(call.endpointName, call.context)));
      },
    },
    ListEvents: { action: "galatea:ListEvents", resource: anyResource, handle: (call) => listEvents(hosting, call) },
    RecordMetrics: {
      action: "galatea:RecordMetrics",
      resource: anyResource,
      async handle(call) {
        const body = await readToBuffer(call.request, batchBytesMax, () => batchTooLong);
        batches.record(parseMetricBatch(body.toString("utf8")));
        respond(call, {});
      },
    },
  };
  return {
    kind: "raw",
    protocol: "rest-json",
    model: galateaModel,
    scope,
    operations,
    setHeaders: (response, requestId) => void response.setHeader("x-amzn-RequestId", requestId),
    async open(exchange) {
      const isBatch = pathOf(exchange.request.url ?? "/") === metricBatchPath;
      const request = await verifiedRequest(exchange, isBatch ? batchBytesMax : bodyBytesMax, scope);
      const { response, context } = exchange;
      const url = request.url ?? "/";
      const found = parseGalateaPath(request.method ?? "GET", pathOf(url));
      if (found === null)
        throw new AwsError(
          "UnknownOperationException",
          `${request.method} ${pathOf(url)} is not a route of this platform.`,
        );
      const endpointName = decodeComponent(found.endpointName);
      return openedCall(operations[found.operation], { endpointName, url, request, response, context });
    },
    sendError: (exchange, thrown) =>
      sendAwsError(
        {
          ...exchange,
          errors: { model: galateaModel, validationCodes },
          protocol: "rest-json",
          operation: galateaModel.service,
        },
        thrown,
      ),
  } as const satisfies RawService;
}

async function listEvents(hosting: Hosting, call: GalateaCall): Promise<void> {
  const limit = numberOf(call, "limit", { least: 1, most: eventsMax, otherwise: eventsDefault });
  const after = numberOf(call, "after", { least: 0, most: Number.MAX_SAFE_INTEGER, otherwise: 0 });
  const found = await hosting.watch.stateChanges(after, limit, waitOf(call));
  const next = found.at(-1)?.number ?? after;
  respond(call, { events: found.map(stateChangeEvent), next: String(next) });
}

function waitOf(call: GalateaCall) {
  const seconds = numberOf(call, "wait", { least: 0, most: waitSecondsMax, otherwise: 0 });
  return { waitMsMax: seconds * 1000, signal: call.context.signal };
}

function numberOf(
  { url }: GalateaCall,
  name: string,
  { least, most, otherwise }: { readonly least: number; readonly most: number; readonly otherwise: number },
): number {
  const text = queryValue(url, name);
  if (text === undefined) return otherwise;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new AwsError("ValidationException", `${name} must be a number from ${least} to ${most}, found '${text}'.`);
}

function endpointOf({ name, arn, state }: EndpointRecord) {
  const reason = failureReason(state);
  return {
    EndpointName: name,
    EndpointArn: arn,
    EndpointStatus: state.at,
    ...(reason === null ? {} : { FailureReason: reason }),
  };
}

function respond({ request, response }: GalateaCall, value: object): void {
  request.resume();
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(200, { "Content-Type": "application/json", "Content-Length": body.byteLength });
  response.end(body);
}
