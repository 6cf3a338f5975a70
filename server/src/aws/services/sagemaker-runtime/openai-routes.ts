import type { IncomingMessage } from "node:http";
import { decodeComponent, pathOf } from "../../../signing/index.ts";
import type { ServiceModel } from "../../spec/index.ts";
import { checkEndpointName } from "./runtime-path.ts";

/** By operation: its method and its path, the same below an endpoint and by itself. */
const routes = {
  CreateChatCompletion: { method: "POST", path: "/v1/chat/completions" },
  CreateCompletion: { method: "POST", path: "/v1/completions" },
  CreateEmbedding: { method: "POST", path: "/v1/embeddings" },
  ListModels: { method: "GET", path: "/v1/models" },
} as const;

export type OpenAiOperation = keyof typeof routes;

const operations = Object.entries(routes) as [OpenAiOperation, (typeof routes)[OpenAiOperation]][];

/** Where SageMaker has them, below an endpoint; and by themselves, where the model that a request names says which endpoint. */
const belowEndpoint = "/endpoints/{EndpointName}/openai";

/** As the gateway finds requests for a service. */
export const openAiModel: ServiceModel = {
  service: "openai",
  apiVersion: "v1",
  protocols: ["rest-json"],
  operations: Object.fromEntries(
    operations.flatMap(([name, { method, path }]) => [
      [name, { method, uri: `${belowEndpoint}${path}` }],
      [`${name}ByModel`, { method, uri: path }],
    ]),
  ),
  otherOperations: [],
  errors: {},
  shapes: {},
};

/** Whether a request line is for one of them, or for what belongs to it. */
export function isOpenAiUrl(url: string): boolean {
  const path = pathOf(url).replace(/^\/endpoints\/[^/]+\/openai(?=\/)/, "");
  return operations.some(([, route]) => route.path === path);
}

export interface OpenAiPath {
  readonly operation: OpenAiOperation;
  /** Of the container; the same that clients have behind their base URL. */
  readonly path: string;
  /** Null where the request's model says it. */
  readonly endpointName: string | null;
}

/** Null for what is none of them, or with another method. Throws AwsError for a name that no endpoint has. */
export function readOpenAiPath({ method, url = "" }: IncomingMessage): OpenAiPath | null {
  const asked = pathOf(url);
  const below = /^\/endpoints\/([^/]+)\/openai(\/.*)$/.exec(asked);
  const path = below?.[2] ?? asked;
  const found = operations.find(([, route]) => route.path === path && route.method === method);
  if (found === undefined) return null;
  const endpointName = below?.[1] === undefined ? null : decodeComponent(below[1]);
  if (endpointName !== null) checkEndpointName(endpointName);
  return { operation: found[0], path, endpointName };
}
