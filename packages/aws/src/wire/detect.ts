import type { IncomingMessage } from "node:http";
import {
  bearerScope,
  credentialScope,
  decodeComponent,
  pathOf,
  queryValue,
  type CredentialScope,
} from "../signing/index.ts";
import type { ModelledService, RawService } from "./service-row.ts";
import type { ServiceTable } from "./service-table.ts";

export type WireProtocol = "json" | "query" | "cbor" | "rest-json" | "rest-xml";
/** Those in which the gateway reads and answers operations itself. */
export type OperationProtocol = Exclude<WireProtocol, "rest-json" | "rest-xml">;

/** What a request is, before anything of its body but a form's Action was read. */
export type Destination =
  | {
      readonly at: "operation";
      readonly service: ModelledService;
      readonly protocol: "json" | "cbor";
      readonly operation: string;
    }
  | { readonly at: "raw"; readonly service: RawService }
  /** Null: the form's own Version tells. */
  | { readonly at: "form"; readonly service: ModelledService | null }
  | { readonly at: "unknown"; readonly name: string; readonly protocol: OperationProtocol };

/** In order: a scope that one service has all of, target prefix, the paths of raw services, RPC path, form action. */
export function detectDestination(
  table: ServiceTable,
  request: IncomingMessage,
): { readonly destination: Destination; readonly scope: CredentialScope | null } {
  const url = request.url ?? "/";
  const { method = "GET", headers } = request;
  const scope = credentialScope({ method, url, headers }) ?? bearerScope(headers.authorization);
  return { destination: destinationOf(table, request, scope?.service ?? null), scope };
}

function destinationOf(table: ServiceTable, request: IncomingMessage, scope: string | null): Destination {
  const { url = "/", headers } = request;
  if (scope !== null && table.fallback?.scope === scope) return { at: "raw", service: table.fallback };
  const path = pathOf(url);
  const target = headers["x-amz-target"];
  if (typeof target === "string") return targeted(table, target, scope);
  const raw = table.ofPath(path, scope);
  if (raw !== null) return { at: "raw", service: raw };
  const scoped = scope === null ? null : table.ofScope(scope);
  const [, rpcService, rpcOperation] = /^\/service\/([^/]+)\/operation\/([^/]+)$/.exec(path) ?? [];
  if (rpcService !== undefined && headers["smithy-protocol"] === "rpc-v2-cbor") {
    const service = scoped ?? table.ofTarget(decodeComponent(rpcService));
    if (service === null) return { at: "unknown", name: rpcService, protocol: "cbor" };
    return { at: "operation", service, protocol: "cbor", operation: decodeComponent(rpcOperation ?? "") };
  }
  const contentType = headers["content-type"] ?? "";
  // The query protocol knows one path; an unsigned upload by curl to any other says the same content type and is S3's.
  const isForm =
    path === "/" &&
    (contentType.startsWith("application/x-www-form-urlencoded") || queryValue(url, "Action") !== undefined);
  if (isForm && (scope === null || scoped?.model.protocols.includes("query") === true)) {
    return { at: "form", service: scoped };
  }
  if (scope !== null) return { at: "unknown", name: scope, protocol: isForm ? "query" : "json" };
  if (table.fallback !== null) return { at: "raw", service: table.fallback };
  return { at: "unknown", name: "s3", protocol: "json" };
}

function targeted(table: ServiceTable, target: string, scope: string | null): Destination {
  const dot = target.lastIndexOf(".");
  const service = table.ofTarget(target.slice(0, dot));
  if (service === null) return { at: "unknown", name: scope ?? target.slice(0, Math.max(dot, 0)), protocol: "json" };
  return { at: "operation", service, protocol: "json", operation: target.slice(dot + 1) };
}
