import { request as httpRequest, Agent } from "node:http";

const agent = new Agent({ keepAlive: true });
const answerTimeoutMs = 120_000;

export interface BenchResponse {
  readonly status: number;
  readonly body: Buffer;
}

/** Sends one request that is not part of the load: set-up, loads, checks. */
export function sendRequest(
  port: number,
  method: string,
  path: string,
  body: Uint8Array = Buffer.alloc(0),
  headers: Readonly<Record<string, string>> = {},
): Promise<BenchResponse> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(
      {
        agent,
        host: "127.0.0.1",
        port,
        method,
        path,
        timeout: answerTimeoutMs,
        headers: { "content-length": body.length, ...headers },
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", reject);
        incoming.on("end", () => resolve({ status: incoming.statusCode ?? 0, body: Buffer.concat(chunks) }));
      },
    );
    outgoing.on("timeout", () => outgoing.destroy(new Error(`no response to ${method} ${path}`)));
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** Sends a request like `sendRequest`, and rejects for any status but 200. */
export async function requestOk(...args: Parameters<typeof sendRequest>): Promise<Buffer> {
  const response = await sendRequest(...args);
  if (response.status !== 200)
    throw new Error(`${args[1]} ${args[2]}: ${response.status} ${response.body.toString("utf8").slice(0, 500)}`);
  return response.body;
}

export async function timedMs(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}
