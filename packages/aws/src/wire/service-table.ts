import type { IncomingMessage } from "node:http";
import { assert } from "@galatea/base";
import {
  bearerScope,
  credentialScope,
  decodeComponent,
  pathOf,
  queryValue,
  type CredentialScope,
} from "../signing/index.ts";
import type { ModelledService, RawService, ServiceRow } from "./service-row.ts";

export type WireProtocol = "json" | "query" | "cbor" | "rest-json" | "rest-xml";
/** Protocols in which the gateway reads requests and writes responses itself. */
export type OperationProtocol = Exclude<WireProtocol, "rest-json" | "rest-xml">;

/**
 * The service and operation of a request. They are determined before the body is read, except for the Action of a form.
 */
export type RequestDestination =
  | {
      readonly at: "operation";
      readonly service: ModelledService;
      readonly protocol: "json" | "cbor";
      readonly operation: string;
    }
  | { readonly at: "raw"; readonly service: RawService }
  /** Null: the Version in the form determines the service. */
  | { readonly at: "form"; readonly service: ModelledService | null }
  /** `name` is a service. If `isServed`, the platform has this service and only the operation is unknown. */
  | {
      readonly at: "unknown";
      readonly name: string;
      readonly isServed: boolean;
      readonly protocol: OperationProtocol;
    };

/** The rows of the platform's services, and the search for a request's service and operation. */
export class ServiceTable {
  /** The service that receives requests that match no other service. */
  readonly #fallback: RawService | null;
  readonly #byScope = new Map<string, ServiceRow[]>();
  readonly #byTarget = new Map<string, ModelledService>();
  readonly #byVersion = new Map<string, ModelledService>();
  readonly #byPath: { readonly service: RawService; readonly path: RegExp }[] = [];

  constructor(rows: readonly ServiceRow[]) {
    for (const row of rows) {
      this.#byScope.set(row.scope, [...(this.#byScope.get(row.scope) ?? []), row]);
      if (row.kind === "raw") {
        const uris = Object.values(row.model?.operations ?? {}).map(({ uri }) => uri);
        if (uris.length > 0) this.#byPath.push({ service: row, path: pathPattern(uris) });
        continue;
      }
      const { targetPrefix, protocols, apiVersion } = row.model;
      if (targetPrefix !== undefined) this.#byTarget.set(targetPrefix, row);
      if (protocols.includes("query")) this.#byVersion.set(apiVersion, row);
    }
    const fallbacks = rows.filter((row) => row.kind === "raw").filter((row) => row.model === null);
    assert(fallbacks.length <= 1, "only one service may receive unmatched requests");
    this.#fallback = fallbacks[0] ?? null;
  }

  /**
   * Finds a request's service and operation. Checks a scope that only one service has first, then the target prefix,
   * the paths of raw services, the RPC path, and a form's action.
   */
  destinationOf(request: IncomingMessage): {
    readonly destination: RequestDestination;
    readonly scope: CredentialScope | null;
  } {
    const { method = "GET", url = "/", headers } = request;
    const scope = credentialScope({ method, url, headers }) ?? bearerScope(headers.authorization);
    return { destination: this.#destination(request, scope?.service ?? null), scope };
  }

  /** Returns the service of a form by the form's Version. */
  findByVersion(version: string): ModelledService | null {
    return this.#byVersion.get(version) ?? null;
  }

  #destination(request: IncomingMessage, scope: string | null): RequestDestination {
    const { url = "/", headers } = request;
    if (scope !== null && this.#fallback?.scope === scope) return { at: "raw", service: this.#fallback };
    const path = pathOf(url);
    const target = headers["x-amz-target"];
    if (typeof target === "string") return this.#targeted(target, scope);
    const raw = this.#findByPath(path, scope);
    if (raw !== null) return { at: "raw", service: raw };
    const scoped = scope === null ? null : this.#findByScope(scope);
    const [, rpcService, rpcOperation] = /^\/service\/([^/]+)\/operation\/([^/]+)$/.exec(path) ?? [];
    if (rpcService !== undefined && headers["smithy-protocol"] === "rpc-v2-cbor") {
      const service = scoped ?? this.#findByTarget(decodeComponent(rpcService));
      if (service === null) return { at: "unknown", name: rpcService, isServed: false, protocol: "cbor" };
      return { at: "operation", service, protocol: "cbor", operation: decodeComponent(rpcOperation ?? "") };
    }
    const contentType = headers["content-type"] ?? "";
    // The query protocol uses only the path `/`. An unsigned upload with curl to any other path has the content type of
    // a form and is a request for S3.
    const isForm =
      path === "/" &&
      (contentType.startsWith("application/x-www-form-urlencoded") || queryValue(url, "Action") !== undefined);
    if (isForm && (scope === null || scoped?.model.protocols.includes("query") === true)) {
      return { at: "form", service: scoped };
    }
    if (scope !== null) {
      const isServed = this.#byScope.has(scope);
      return { at: "unknown", name: scope, isServed, protocol: isForm ? "query" : "json" };
    }
    if (this.#fallback !== null) return { at: "raw", service: this.#fallback };
    return { at: "unknown", name: "s3", isServed: false, protocol: "json" };
  }

  #targeted(target: string, scope: string | null): RequestDestination {
    const dot = target.lastIndexOf(".");
    const service = this.#findByTarget(target.slice(0, dot));
    if (service === null) {
      const name = scope === null || this.#byScope.has(scope) ? target.slice(0, Math.max(dot, 0)) : scope;
      return { at: "unknown", name, isServed: false, protocol: "json" };
    }
    return { at: "operation", service, protocol: "json", operation: target.slice(dot + 1) };
  }

  /** Returns the modelled service with this name in credential scopes. */
  #findByScope(scope: string): ModelledService | null {
    return this.#byScope.get(scope)?.find((row) => row.kind === "modelled") ?? null;
  }

  /** Returns the service with this prefix of X-Amz-Target. Paths of RPC protocols contain the same prefix. */
  #findByTarget(prefix: string): ModelledService | null {
    return this.#byTarget.get(prefix) ?? null;
  }

  #findByPath(path: string, scope: string | null): RawService | null {
    const found = this.#byPath.find(
      ({ service, path: pattern }) => (scope === null || scope === service.scope) && pattern.test(path),
    );
    return found?.service ?? null;
  }
}

/**
 * Returns a pattern that matches paths such as `/endpoints/{EndpointName}/invocations`. A label matches any single
 * segment.
 */
function pathPattern(uris: readonly string[]): RegExp {
  const patterns = uris.map((uri) =>
    uri
      .split(/\{[^}]+\}/)
      .map((text) => RegExp.escape(text))
      .join("[^/]+"),
  );
  return new RegExp(`^(?:${patterns.join("|")})$`);
}
