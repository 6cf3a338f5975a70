import { Agent, request as httpRequest } from "node:http";
import type { RunningServer } from "../environments/index.ts";
import type { ComparedResponse, Request, Step } from "./case.ts";
import { comparedHeaders } from "./compare.ts";
import { callGrpc, NoResponse } from "../../packages/server/src/protocols/raw-grpc-client.ts";
import { responseOf } from "./grpc-messages.ts";

/** The beginnings of bodies that may contain texts of the server: JSON, and events of JSON. */
const textBeginnings = ["{", "[", "data: "];
const answerTimeoutMs = 60_000;

/** Texts that differ between two runs of a case and are replaced in both before the comparison. */
export interface Masks {
  readonly repository: string;
  /** The real directory for `/opt/ml`; null if it is not replaced. */
  readonly mlRoot: string | null;
}

/** The namespace before a model's name, lines of Python's import machinery in a traceback, and addresses of objects. */
const noise = [
  [/\b0x[0-9a-f]{8,16}\b/g, "<address>"],
  [/'\/opt\/ml\/models\/[^':]*::/g, "'"],
  [/ {2}[^\\ ]*\/(?:triton_python_backend_utils|model_config)\.py\(\d+\): \w+\\n/g, ""],
  [/ {2}(?:<frozen importlib[^\\]*|[^\\ ]*\/importlib\/__init__\.py\(\d+\): import_module)\\n/g, ""],
] as const;

/**
 * Sends a case's steps in order. Steps with `afterMs` overlap with earlier ones. The result is null for a step that is
 * not sent.
 */
export async function sendSteps(
  server: RunningServer,
  steps: readonly Step[],
  masks: Masks,
  skip: (step: Step) => boolean,
): Promise<(readonly ComparedResponse[] | null)[]> {
  using agent = disposableAgent();
  const responses: Promise<readonly ComparedResponse[] | null>[] = [];
  for (const step of steps) {
    if (step.request.afterMs === undefined) await Promise.all(responses);
    else await new Promise((resolve) => setTimeout(resolve, step.request.afterMs));
    const sent = skip(step) ? Promise.resolve(null) : sendCopies(server, step.request, masks, agent.agent);
    sent.catch(() => {});
    responses.push(sent);
  }
  // The responses are awaited here, because the agent closes its connections at the end of this scope.
  return await Promise.all(responses);
}

function disposableAgent() {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  return { agent, [Symbol.dispose]: () => agent.destroy() };
}

async function sendCopies(
  server: RunningServer,
  request: Request,
  masks: Masks,
  agent: Agent,
): Promise<ComparedResponse[]> {
  const copies = Array.from({ length: request.copies ?? 1 }, () => send(server, request, masks, agent));
  const different = new Map<string, ComparedResponse>();
  for (const response of await Promise.all(copies)) {
    different.set(
      JSON.stringify([response.status, response.headers, Buffer.from(response.body).toString("base64")]),
      response,
    );
  }
  return [...different.keys()].sort().map((key) => different.get(key) as ComparedResponse);
}

async function sendCall(server: RunningServer, request: Request, masks: Masks): Promise<ComparedResponse> {
  const reply = await callGrpc(server.grpcPort, {
    path: request.path,
    metadata: request.headers ?? {},
    body: Buffer.from((request.body ?? "") as Uint8Array),
    timeoutMs: answerTimeoutMs,
  });
  const response = responseOf(request.path, reply);
  return { ...response, body: mask(Buffer.from(response.body), masks) };
}

function send(server: RunningServer, request: Request, masks: Masks, agent: Agent): Promise<ComparedResponse> {
  if (request.method === "GRPC") return sendCall(server, request, masks);
  const ports = { http: server.httpPort, metrics: server.metricsPort, sagemaker: server.sagemakerPort };
  const body = request.body === undefined ? undefined : Buffer.from(request.body as string);
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(
      {
        agent,
        host: "127.0.0.1",
        port: ports[request.port ?? "http"],
        method: request.method,
        path: request.path,
        headers: { ...(body === undefined ? {} : { "content-length": body.length }), ...request.headers },
        timeout: answerTimeoutMs,
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
        incoming.on("error", reject);
        incoming.on("end", () => {
          const headers: Record<string, string> = {};
          for (const name of comparedHeaders) {
            const value = incoming.headers[name];
            if (value !== undefined) headers[name] = String(value);
          }
          resolve({ status: incoming.statusCode ?? 0, headers, body: mask(Buffer.concat(chunks), masks) });
        });
      },
    );
    outgoing.on("timeout", () =>
      outgoing.destroy(new NoResponse(`no response to ${request.method} ${request.path} in 60 s`)),
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

function mask(body: Buffer, masks: Masks): Buffer {
  const beginning = body.toString("latin1", 0, 6);
  if (!textBeginnings.some((text) => beginning.startsWith(text))) return body;
  const before = body.toString("latin1");
  let text = before.replaceAll(masks.repository, "<repository>");
  if (masks.mlRoot !== null) text = text.replaceAll(masks.mlRoot, "/opt/ml");
  for (const [pattern, replacement] of noise) text = text.replace(pattern, replacement);
  return text === before ? body : Buffer.from(text, "latin1");
}
