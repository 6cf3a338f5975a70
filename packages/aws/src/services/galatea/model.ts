import type { ServiceModel } from "../../spec/index.ts";

/**
 * The model of the platform's own operations. Requests are signed like SageMaker's, so that the keys of any AWS client
 * are valid.
 */
export const galateaModel = {
  service: "Galatea",
  apiVersion: "1",
  protocols: ["rest-json"],
  operations: {
    StopEndpoint: { method: "POST", uri: "/galatea/endpoints/{EndpointName}/stop" },
    StartEndpoint: { method: "POST", uri: "/galatea/endpoints/{EndpointName}/start" },
    WatchEndpoint: { method: "GET", uri: "/galatea/endpoints/{EndpointName}" },
    ListEvents: { method: "GET", uri: "/galatea/events" },
    RecordMetrics: { method: "POST", uri: "/galatea/metrics" },
  },
  otherOperations: [],
  errors: {},
  shapes: {},
} as const satisfies ServiceModel;

export type GalateaOperation = keyof typeof galateaModel.operations;

/** Parses the path of a request; null for a path or method that is not one of these operations. */
export function parseGalateaPath(
  method: string,
  path: string,
): { readonly operation: GalateaOperation; readonly endpointName: string } | null {
  const [, area, name = "", verb, ...more] = path.split("/").slice(1);
  if (more.length > 0) return null;
  if (area === "events" && name === "" && verb === undefined) {
    return method === "GET" ? { operation: "ListEvents", endpointName: "" } : null;
  }
  if (area === "metrics" && name === "" && verb === undefined) {
    return method === "POST" ? { operation: "RecordMetrics", endpointName: "" } : null;
  }
  if (area !== "endpoints" || name === "") return null;
  const endpointName = name;
  if (verb === undefined) return method === "GET" ? { operation: "WatchEndpoint", endpointName } : null;
  if (method !== "POST") return null;
  if (verb === "stop") return { operation: "StopEndpoint", endpointName };
  return verb === "start" ? { operation: "StartEndpoint", endpointName } : null;
}
