import type { Readable } from "node:stream";
import { Pool, type Dispatcher } from "undici";
import { ContainerGone, errorText } from "../instance-agent/index.ts";
import { AgentProtocolError, errorFromWire, headers, protocolVersion, type AgentErrorBody } from "./agent-protocol.ts";
import type { AgentAddress } from "./agent-server.ts";

export interface AgentConnectionOptions {
  readonly address: AgentAddress;
  readonly token: string | null;
  readonly connectMsMax: number;
}

export interface AgentExchange {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly body?: Dispatcher.DispatchOptions["body"];
  readonly signal?: AbortSignal;
  /** The longest silence of the response; without a bound unless given. */
  readonly silentMsMax?: number;
}

export interface AgentResponse {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Must be consumed or destroyed. */
  readonly body: Readable;
}

/** Without a connection the agent has not had the request. */
const neverSent = new Set(["ECONNREFUSED", "ENOENT", "UND_ERR_CONNECT_TIMEOUT"]);

/** Exchanges with an agent, each on a connection of its own while it lasts. */
export class AgentConnection implements AsyncDisposable {
  readonly #pool: Pool;
  readonly #headers: Record<string, string>;

  constructor({ address, token, connectMsMax }: AgentConnectionOptions) {
    const origin = address.kind === "socket" ? "http://agent" : `http://${hostOf(address.host)}:${address.port}`;
    const connect = { timeout: connectMsMax, ...(address.kind === "socket" ? { socketPath: address.path } : {}) };
    this.#pool = new Pool(origin, { connect, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
    this.#headers = {
      [headers.protocol]: protocolVersion,
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    };
  }

  /** Rejects with the agent's error, ContainerGone where the agent is gone, or the signal's reason. */
  async send({
    headers: more,
    silentMsMax = 0,
    signal,
    body: sent,
    ...exchange
  }: AgentExchange): Promise<AgentResponse> {
    let response: Dispatcher.ResponseData;
    try {
      response = await this.#pool.request({
        ...exchange,
        body: sent ?? null,
        headers: { ...more, ...this.#headers },
        headersTimeout: silentMsMax,
        bodyTimeout: silentMsMax,
        signal: signal ?? null,
      });
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      throw new AgentGone(error);
    }
    const { headers: received, body, statusCode } = response;
    // Also heard where nobody reads: a body that is dropped has an error to tell, which would end the process.
    body.on("error", () => {});
    if (statusCode === 200 && received[headers.protocol] === protocolVersion) return { headers: received, body };
    const text = await errorText(body);
    if (received[headers.error] !== undefined) throw errorFromWire(JSON.parse(text) as AgentErrorBody);
    const said = String(received[headers.protocol] ?? "none");
    throw new AgentProtocolError(
      `The client speaks version ${protocolVersion} of the agent's protocol, and the agent ${said}: run the same version of Galatea on both`,
    );
  }

  async json<Value>(exchange: AgentExchange): Promise<Value> {
    const { body } = await this.send(exchange);
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) chunks.push(chunk);
    } catch (error) {
      throw new AgentGone(error);
    }
    return JSON.parse(Buffer.concat(chunks).toString("utf8")) as Value;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.destroy();
  }
}

/** The agent does not answer, or ended before it had. */
export class AgentGone extends ContainerGone {
  /** Whether it had nothing of the request. */
  readonly wasNotSent: boolean;

  constructor(cause: unknown) {
    super(`the instance agent is gone: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = "AgentGone";
    this.wasNotSent = neverSent.has((cause as NodeJS.ErrnoException).code ?? "");
  }
}

const hostOf = (host: string) => (host.includes(":") ? `[${host}]` : host);
