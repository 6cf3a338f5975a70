import assert from "node:assert/strict";
import { Agent, request as httpRequest } from "node:http";
import { testTimeoutMs } from "../../packages/base/src/core/eventually-fixture.ts";

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

export interface HttpRequest {
  readonly method?: string;
  readonly path: string;
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Sends one request on its own connection; `where` is a port or a Unix socket. */
export function sendRequest(where: number | string, question: HttpRequest): Promise<HttpResponse> {
  const body = question.body === undefined ? null : Buffer.from(question.body as string);
  const timeout = AbortSignal.timeout(testTimeoutMs);
  const signal = question.signal === undefined ? timeout : AbortSignal.any([question.signal, timeout]);
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        ...(typeof where === "number" ? { host: "127.0.0.1", port: where } : { socketPath: where }),
        agent: new Agent({ keepAlive: false }),
        method: question.method ?? (body === null ? "GET" : "POST"),
        path: question.path,
        headers: { ...(body === null ? {} : { "content-length": String(body.length) }), ...question.headers },
        signal,
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
        );
      },
    );
    request.on("error", reject);
    request.end(body ?? undefined);
  });
}

/** The faulty model's request. */
export function faultyRequest(
  what: string,
  { value = [1, 2, 3], id }: { value?: readonly number[]; id?: string } = {},
): string {
  return JSON.stringify({
    ...(id === undefined ? {} : { id }),
    inputs: [
      { name: "DO", datatype: "BYTES", shape: [1], data: [what] },
      { name: "VALUE", datatype: "FP32", shape: [value.length], data: value },
    ],
  });
}

export const inferPath = (model: string) => `/v2/models/${model}/infer`;

export function infer(
  port: number,
  model: string,
  body: string | Uint8Array,
  more: Partial<HttpRequest> = {},
): Promise<HttpResponse> {
  return sendRequest(port, { path: inferPath(model), body, ...more });
}

/** Returns the text of a protocol error. Fails for another status. */
export function errorOf(response: HttpResponse, status: number): string {
  assert.equal(response.status, status, response.body.toString());
  return (JSON.parse(response.body.toString()) as { error: string }).error;
}

interface JsonOutputs {
  readonly outputs: readonly { readonly name: string; readonly data: readonly unknown[] }[];
}

/** Returns the TEXT output of the model. Fails for any status but 200. */
export function textOf(response: HttpResponse): string {
  return String(outputOf(response, "TEXT")[0]);
}

export function outputOf(response: HttpResponse, name: string): readonly unknown[] {
  assert.equal(response.status, 200, response.body.toString());
  const { outputs } = JSON.parse(response.body.toString()) as JsonOutputs;
  return outputs.find((output) => output.name === name)?.data ?? [];
}

/** Checks that the model responds correctly. */
export async function assertEchoes(port: number, model: string): Promise<void> {
  const value = [0.5, -7, 1e9];
  assert.deepEqual(outputOf(await infer(port, model, faultyRequest("echo", { value })), "OUT"), value);
}

export function load(port: number, model: string, body: object = {}): Promise<HttpResponse> {
  return sendRequest(port, { path: `/v2/repository/models/${model}/load`, body: JSON.stringify(body) });
}

export function unload(port: number, model: string): Promise<HttpResponse> {
  return sendRequest(port, { path: `/v2/repository/models/${model}/unload`, body: "{}" });
}
