import type { IncomingMessage } from "node:http";
import { decodeComponent, pathOf } from "../../signing/index.ts";
import type { ServiceModel } from "../../spec/index.ts";
import { checkEndpointName } from "./runtime-path.ts";

/** By operation: its method and its path, the same below an endpoint and by itself. */
const routes = {
  CreateChatCompletion: { method: "POST", path: "/v1/chat/completions" },
  CreateCompletion: { method: "POST", path: "/v1/completions" },
  CreateEmbedding: { method: "POST", path: "/v1/embeddings" },
  CreateResponse: { method: "POST", path: "/v1/responses" },
  ListModels: { method: "GET", path: "/v1/models" },
  /** Behind its path, the model's name. */
  RetrieveModel: { method: "GET", path: "/v1/models/" },
} as const;

export type OpenAiOperation = keyof typeof routes;

const operations = Object.entries(routes) as [OpenAiOperation, (typeof routes)[OpenAiOperation]][];

/** Where SageMaker has them, below an endpoint; and by themselves, where the model that a request names says which endpoint. */
const belowEndpoint = "/endpoints/{EndpointName}/openai";
const belowComponent = "/endpoints/{EndpointName}/inference-components/{InferenceComponentName}/openai";
const below = /^\/endpoints\/([^/]+)(?:\/inference-components\/([^/]+))?\/openai(?=\/)/;

/** As the gateway finds requests for a service. */
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

/** Returns whether a request line is for one of them, or for what belongs to it. */
export function isOpenAiUrl(url: string): boolean {
  const path = pathOf(url).replace(below, "");
  return operations.some(([, route]) => isAt(route.path, path));
}

export interface OpenAiPath {
  readonly operation: OpenAiOperation;
  /** Of the container; the same that clients have behind their base URL. */
  readonly path: string;
  /** Null where the request's model says it. */
  readonly endpointName: string | null;
  /** Of an endpoint whose models are inference components. */
  readonly componentName: string | null;
  /** Of which model something is asked; null where the body says it, or nobody. */
  readonly model: string | null;
}

const isAt = (route: string, path: string) =>
  route.endsWith("/") ? path.startsWith(route) && path.length > route.length : route === path;

/** Null for what is none of them, or with another method. Throws AwsError for a name that no endpoint has. */
export function readOpenAiPath({ method, url = "" }: IncomingMessage): OpenAiPath | null {
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
