import type { IncomingMessage } from "node:http";
import { decodeComponent, pathOf } from "../../signing/index.ts";
import type { ServiceModel } from "../../spec/index.ts";
import { checkEndpointName } from "./runtime-path.ts";

/** Method and path by operation. The path may follow the path of an endpoint. */
const routes = {
  CreateChatCompletion: { method: "POST", path: "/v1/chat/completions" },
  CreateCompletion: { method: "POST", path: "/v1/completions" },
  CreateEmbedding: { method: "POST", path: "/v1/embeddings" },
  CreateResponse: { method: "POST", path: "/v1/responses" },
  ListModels: { method: "GET", path: "/v1/models" },
  /** The model's name follows this path. */
  RetrieveModel: { method: "GET", path: "/v1/models/" },
} as const;

export type OpenAiOperation = keyof typeof routes;

const operations = Object.entries(routes) as [OpenAiOperation, (typeof routes)[OpenAiOperation]][];

/** Paths of an endpoint, as in SageMaker. A request without such a path names the endpoint in its `model`. */
const belowEndpoint = "/endpoints/{EndpointName}/openai";
const belowComponent = "/endpoints/{EndpointName}/inference-components/{InferenceComponentName}/openai";
const below = /^\/endpoints\/([^/]+)(?:\/inference-components\/([^/]+))?\/openai(?=\/)/;

/** The model by whose paths the gateway recognises requests for this service. */
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

/** Returns whether a URL is a route of this service or a path below a route. */
export function isOpenAiUrl(url: string): boolean {
  const path = pathOf(url).replace(below, "");
  return operations.some(([, route]) => isAt(route.path, path));
}

export interface OpenAiPath {
  readonly operation: OpenAiOperation;
  /** Path on the container; it equals the client's path after its base URL. */
  readonly path: string;
  /** Null if the `model` of the request names the endpoint. */
  readonly endpointName: string | null;
  /** The inference component; null if the path names none. */
  readonly componentName: string | null;
  /** The model in the URL; null if the body names the model, or for a listing. */
  readonly model: string | null;
}

const isAt = (route: string, path: string) =>
  route.endsWith("/") ? path.startsWith(route) && path.length > route.length : route === path;

/** Parses a request's path and method; null if they match no operation. Throws AwsError for an invalid endpoint name. */
export function parseOpenAiPath({ method, url = "" }: IncomingMessage): OpenAiPath | null {
  const requested = pathOf(url);
  const [prefix = "", endpoint, component] = below.exec(requested) ?? [];
  const path = requested.slice(prefix.length);
  const found = operations.find(([, route]) => isAt(route.path, path) && route.method === method);
  if (found === undefined) return null;
  const [operation, route] = found;
  const endpointName = endpoint === undefined ? null : decodeComponent(endpoint);
  if (endpointName !== null) checkEndpointName(endpointName);
  const componentName = component === undefined ? null : decodeComponent(component);
  const model = route.path.endsWith("/") ? decodeComponent(path.slice(route.path.length)) : null;
  return { operation, path, endpointName, componentName, model };
}
