import type { IncomingMessage } from "node:http";
import { decodeComponent, pathOf } from "../../signing/index.ts";
import type { ServiceModel } from "../../spec/index.ts";
import { checkEndpointName } from "./runtime-path.ts";

/** Method and path by operation, with and without an endpoint before it. */
const routes = {
  CreateChatCompletion: { method: "POST", path: "/v1/chat/completions" },
  CreateCompletion: { method: "POST", path: "/v1/completions" },
  CreateEmbedding: { method: "POST", path: "/v1/embeddings" },
  CreateResponse: { method: "POST", path: "/v1/responses" },
  ListModels: { method: "GET", path: "/v1/models" },
  /** Followed by the model's name. */
  RetrieveModel: { method: "GET", path: "/v1/models/" },
} as const;

export type OpenAiOperation = keyof typeof routes;

const operations = Object.entries(routes) as [OpenAiOperation, (typeof routes)[OpenAiOperation]][];

/** Paths below an endpoint, as in SageMaker; without one, the model in the request names the endpoint. */
const belowEndpoint = "/endpoints/{EndpointName}/openai";
const belowComponent = "/endpoints/{EndpointName}/inference-components/{InferenceComponentName}/openai";
const below = /^\/endpoints\/([^/]+)(?:\/inference-components\/([^/]+))?\/openai(?=\/)/;

/** The model by which the gateway finds the service's requests. */
export const openAiModel: ServiceModel = {
  service: "openai",
  apiVersion: "v1",
  protocols: ["rest-json"],
  operations: Object.fromEntries(
    operations.flatMap(([name, { method, path }]) => {
      const uri = path.endsWith("/") ? `${path}{Model+}` : path;
      return [
        [name, { method, uri: `${belowEndpoint}${uri}` }],
        [`${name}OfComponent`, { method, uri: `${belowComponent}${uri}` }],
        [`${name}ByModel`, { method, uri }],
      ];
    }),
  ),
  otherOperations: [],
  errors: {},
  shapes: {},
};

/** Returns whether a URL is a route of this service, or below one. */
export function isOpenAiUrl(url: string): boolean {
  const path = pathOf(url).replace(below, "");
  return operations.some(([, route]) => isAt(route.path, path));
}

export interface OpenAiPath {
  readonly operation: OpenAiOperation;
  /** Path on the container; it equals the client's path after its base URL. */
  readonly path: string;
  /** Null if the request's model names it. */
  readonly endpointName: string | null;
  /** For an endpoint whose models are inference components. */
  readonly componentName: string | null;
  /** The model in the URL; null if it is in the body, or if there is none. */
  readonly model: string | null;
}

const isAt = (route: string, path: string) =>
  route.endsWith("/") ? path.startsWith(route) && path.length > route.length : route === path;

/** Returns null for any other path or method. Throws AwsError for an invalid endpoint name. */
export function parseOpenAiPath({ method, url = "" }: IncomingMessage): OpenAiPath | null {
  const asked = pathOf(url);
  const [prefix = "", endpoint, component] = below.exec(asked) ?? [];
  const path = asked.slice(prefix.length);
  const found = operations.find(([, route]) => isAt(route.path, path) && route.method === method);
  if (found === undefined) return null;
  const [operation, route] = found;
  const endpointName = endpoint === undefined ? null : decodeComponent(endpoint);
  if (endpointName !== null) checkEndpointName(endpointName);
  const componentName = component === undefined ? null : decodeComponent(component);
  const model = route.path.endsWith("/") ? decodeComponent(path.slice(route.path.length)) : null;
  return { operation, path, endpointName, componentName, model };
}
