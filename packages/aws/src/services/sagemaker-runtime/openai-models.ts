import type { ServerResponse } from "node:http";
import { checkModelExists, type OpenAiCall } from "./openai-calls.ts";
import type { RuntimeOptions } from "./invoke-endpoint.ts";

interface OpenAiModel {
  readonly id: string;
  readonly object: "model";
  readonly created: number;
  readonly owned_by: string;
}

const pageLength = 100;
const modelsMax = 1000;

/**
 * Lists the endpoints in service as models. The inference components of an endpoint are listed as models, too. Lists
 * only those of the endpoint that the request names, if any.
 */
export async function listModels({ hosting }: RuntimeOptions, call: OpenAiCall): Promise<void> {
  const { response, context, path: requested } = call;
  const models: OpenAiModel[] = [];
  const add = (name: string, createdMs: number) => models.push(...modelsOf(hosting, name, createdMs));
  if (requested.endpointName === null) {
    const anyTime = { fromMs: null, untilMs: null };
    const question = { sortBy: "name", isDescending: false, nameContains: "", status: "InService" } as const;
    let after = null;
    for (let hasMore = true; hasMore && models.length < modelsMax;) {
      const page = { ...question, created: anyTime, modified: anyTime, after, limit: pageLength };
      const found = await hosting.endpoints.list(page, context.nextTick);
      for (const { name, createdMs, state } of found.page) {
        add(name, createdMs);
        after = { name, createdMs, status: state.at };
      }
      ({ hasMore } = found);
    }
  } else {
    const { name, createdMs } = await runningEndpoint(hosting, call);
    add(name, createdMs);
  }
  send(response, { object: "list", data: models.slice(0, modelsMax) });
}

/** Returns one model of the listing. */
export async function retrieveModel({ hosting }: RuntimeOptions, call: OpenAiCall): Promise<void> {
  const { model, componentName } = call.path;
  const { name, createdMs } = await runningEndpoint(hosting, call);
  const requested = componentName === null ? (model ?? name) : `${name}/${componentName}`;
  const found = modelsOf(hosting, name, createdMs).find(({ id }) => id.toLowerCase() === requested.toLowerCase());
  checkModelExists(found !== undefined, requested);
  send(call.response, found ?? {});
}

async function runningEndpoint(hosting: RuntimeOptions["hosting"], { endpointName, context }: OpenAiCall) {
  checkModelExists(hosting.isRunning(endpointName), endpointName);
  return await hosting.endpoints.find(endpointName, context);
}

/**
 * Returns the models of an endpoint. An endpoint with inference components is not listed itself, because requests must
 * name a component.
 */
function modelsOf(hosting: RuntimeOptions["hosting"], name: string, createdMs: number): readonly OpenAiModel[] {
  const components = hosting.components.namesOn(name);
  const ids = components.length === 0 ? [name] : components.map((component) => `${name}/${component}`);
  return ids.map((id) => ({ id, object: "model", created: Math.floor(createdMs / 1000), owned_by: "galatea" }));
}

function send(response: ServerResponse, document: object): void {
  const body = Buffer.from(JSON.stringify(document));
  response.writeHead(200, { "content-type": "application/json", "content-length": body.length });
  response.end(body);
}
