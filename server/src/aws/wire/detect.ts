import type { IncomingMessage } from "node:http";
import { credentialScope, decodeComponent, pathOf, queryValue, type CredentialScope } from "../../signing/index.ts";
import { serviceModels, type ModelledService } from "../spec/index.ts";

export type WireProtocol = "json" | "query" | "rest-json" | "cbor";

/** What a request is, before anything of its body but a form's Action was read. */
export type Destination =
  | {
      readonly at: "operations";
      readonly service: ModelledService;
      readonly protocol: WireProtocol;
      readonly operation: string;
    }
  | { readonly at: "runtime" }
  | { readonly at: "s3" }
  | { readonly at: "form"; readonly service: ModelledService | null }
  | { readonly at: "unknown"; readonly service: string; readonly protocol: WireProtocol };

/** SigV4 service names are not always boto3's. sagemaker-runtime shares sagemaker's: told apart by path. */
const servicesByScope: ReadonlyMap<string, ModelledService> = new Map([
  ["sagemaker", "sagemaker"],
  ["monitoring", "cloudwatch"],
  ["logs", "logs"],
  ["sts", "sts"],
  ["iam", "iam"],
]);

const servicesByTarget: ReadonlyMap<string, ModelledService> = new Map(
  Object.entries(serviceModels)
    .filter(([, model]) => model.targetPrefix !== undefined)
    .map(([name, model]) => [model.targetPrefix ?? "", name as ModelledService]),
);

const servicesByVersion: ReadonlyMap<string, ModelledService> = new Map(
  Object.entries(serviceModels)
    .filter(([, model]) => model.protocols.includes("query"))
    .map(([name, model]) => [model.apiVersion, name as ModelledService]),
);

/** In order: credential scope (header, presigned, SigV2), target prefix, form action, path. */
export function detectDestination(request: IncomingMessage): {
  destination: Destination;
  scope: CredentialScope | null;
} {
  const url = request.url ?? "/";
  const scope = credentialScope({ method: request.method ?? "GET", url, headers: request.headers });
  return { destination: destinationOf(request, url, scope), scope };
}

function destinationOf(request: IncomingMessage, url: string, scope: CredentialScope | null): Destination {
  if (scope?.service === "s3") return { at: "s3" };
  const path = pathOf(url);
  const target = request.headers["x-amz-target"];
  const scoped = scope === null ? undefined : servicesByScope.get(scope.service);
  if (typeof target === "string") return targeted(target, scope?.service);
  if (scoped === "sagemaker" || (scope === null && isRuntimePath(path))) {
    if (isRuntimePath(path)) return { at: "runtime" };
    return { at: "unknown", service: "sagemaker", protocol: "json" };
  }
  const rpc = /^\/service\/([^/]+)\/operation\/([^/]+)$/.exec(path);
  if (rpc !== null && request.headers["smithy-protocol"] === "rpc-v2-cbor") {
    const service = scoped ?? servicesByTarget.get(decodeComponent(rpc[1] ?? ""));
    if (service === undefined) return { at: "unknown", service: rpc[1] ?? "", protocol: "cbor" };
    return { at: "operations", service, protocol: "cbor", operation: decodeComponent(rpc[2] ?? "") };
  }
  const contentType = request.headers["content-type"] ?? "";
  // The query protocol knows one path; an unsigned upload by curl to any other says the same content type and is S3's.
  const isForm =
    path === "/" &&
    (contentType.startsWith("application/x-www-form-urlencoded") || queryValue(url, "Action") !== undefined);
  if (isForm && (scope === null || scoped !== undefined)) return { at: "form", service: scoped ?? null };
  if (scope !== null) return { at: "unknown", service: scope.service, protocol: isForm ? "query" : "json" };
  return { at: "s3" };
}

function targeted(target: string, scopeService: string | undefined): Destination {
  const dot = target.lastIndexOf(".");
  const service = servicesByTarget.get(target.slice(0, dot));
  if (service === undefined) {
    return { at: "unknown", service: scopeService ?? target.slice(0, Math.max(dot, 0)), protocol: "json" };
  }
  return { at: "operations", service, protocol: "json", operation: target.slice(dot + 1) };
}

export const serviceOfVersion = (version: string): ModelledService | undefined => servicesByVersion.get(version);

const isRuntimePath = (path: string) =>
  /^\/endpoints\/[^/]+\/(?:invocations|async-invocations|invocations-response-stream)$/.test(path);
