import { isIP } from "node:net";
import type { Readable } from "node:stream";
import { Pool, type Dispatcher } from "undici";
import type { Certificate } from "@galatea/base/certificates";
import { ContainerConnectionLost, readErrorText } from "../instance-agent/index.ts";
import {
  AgentProtocolError,
  errorFromWire,
  agentHeaders,
  agentProtocolVersion,
  type AgentErrorBody,
} from "./agent-protocol.ts";
import type { AgentAddress } from "./agent-server.ts";

/** The certificates by which a client and an agent that listens with TLS recognize each other. */
export interface AgentTlsOptions {
  /** PEM of the trusted authorities, or of the agent's self-signed certificate. Several are accepted during a rotation. */
  readonly caPem: string;
  /** The name or IP address that the agent's certificate must be valid for. */
  readonly serverName: string;
  /** The client's own certificate, for an agent that requires one. */
  readonly certificate?: Certificate;
}

/** The address of an agent, and what the connection to it trusts. */
export interface AgentDestination {
  readonly address: AgentAddress;
  /** Null for an agent without TLS. */
  readonly trust: AgentTlsOptions | null;
}

export interface AgentConnectionOptions {
  /** Null where the agent has no address yet: requests fail as not sent until `moveTo`. */
  readonly address: AgentAddress | null;
  readonly token: string | null;
  /** Null for an agent without TLS. */
  readonly trust: AgentTlsOptions | null;
  readonly connectMsMax: number;
}

export interface AgentHttpRequest {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly body?: Dispatcher.DispatchOptions["body"];
  readonly signal?: AbortSignal;
  /** Read time-out: the longest time without data of the response. No time-out by default. */
  readonly readTimeoutMs?: number;
}

export interface AgentResponse {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Must be consumed or destroyed. */
  readonly body: Readable;
}

const noAddressCode = "ADDRESS_UNKNOWN";

/** Errors before a connection: the request was not sent. */
const notSentCodes = new Set([
  noAddressCode,
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "UND_ERR_CONNECT_TIMEOUT",
  "CERT_HAS_EXPIRED",
  "CERT_NOT_YET_VALID",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "ERR_SSL_WRONG_VERSION_NUMBER",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/** HTTP requests to an agent. Each has a connection of the pool to itself. */
export class AgentConnection implements AsyncDisposable {
  #options: AgentConnectionOptions;
  readonly #headers: Record<string, string>;
  #pool: Pool | null;

  constructor(options: AgentConnectionOptions) {
    const { token } = options;
    this.#options = options;
    this.#pool = openPool(options);
    this.#headers = {
      [agentHeaders.protocol]: agentProtocolVersion,
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    };
  }

  /** Rejects with the agent's error, AgentConnectionLost when the agent does not respond, AgentProtocolError, or the signal's reason. */
  async send({
    headers: more,
    readTimeoutMs = 0,
    signal,
    body: sent,
    ...request
  }: AgentHttpRequest): Promise<AgentResponse> {
    let response: Dispatcher.ResponseData;
    if (this.#pool === null)
      throw new AgentConnectionLost(Object.assign(new Error("it has no address yet"), { code: noAddressCode }));
    try {
      response = await this.#pool.request({
        ...request,
        body: sent ?? null,
        headers: { ...more, ...this.#headers },
        headersTimeout: readTimeoutMs,
        bodyTimeout: readTimeoutMs,
        signal: signal ?? null,
      });
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      throw new AgentConnectionLost(error);
    }
    const { headers: received, body, statusCode } = response;
    // Without this listener, a connection that breaks after the body was dropped would be an uncaught error.
    body.on("error", () => {});
    if (statusCode === 200 && received[agentHeaders.protocol] === agentProtocolVersion)
      return { headers: received, body };
    const text = await readErrorText(body);
    if (received[agentHeaders.error] !== undefined) throw errorFromWire(JSON.parse(text) as AgentErrorBody);
    const agentVersion = String(received[agentHeaders.protocol] ?? "none");
    throw new AgentProtocolError(
      `The client speaks version ${agentProtocolVersion} of the agent's protocol, and the agent ${agentVersion}: run the same version of Galatea on both`,
    );
  }

  async json<Value>(request: AgentHttpRequest): Promise<Value> {
    const { body } = await this.send(request);
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) chunks.push(chunk);
    } catch (error) {
      throw new AgentConnectionLost(error);
    }
    return JSON.parse(Buffer.concat(chunks).toString("utf8")) as Value;
  }

  /** Fails all requests in progress with AgentConnectionLost. Later requests open new connections. */
  abortAll(cause: Error): void {
    const aborted = this.#pool;
    this.#pool = openPool(this.#options);
    void aborted?.destroy(cause);
  }

  /** Sends later requests to another address. Requests in progress continue at the former one. */
  moveTo(destination: AgentDestination): void {
    const left = this.#pool;
    this.#options = { ...this.#options, ...destination };
    this.#pool = openPool(this.#options);
    void left?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool?.destroy();
  }
}

function openPool({ address, trust, connectMsMax }: AgentConnectionOptions): Pool | null {
  if (address === null) return null;
  const scheme = trust === null ? "http" : "https";
  const origin =
    address.kind === "socket" ? `${scheme}://agent` : `${scheme}://${hostOf(address.host)}:${address.port}`;
  const connect = {
    timeout: connectMsMax,
    ...(address.kind === "socket" ? { socketPath: address.path } : {}),
    ...(trust === null ? {} : tlsOptions(trust)),
  };
  return new Pool(origin, { connect, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
}

/** Codes of an agent's certificate that this client does not accept. */
const certificateCodes = /^(?:CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|ERR_TLS_CERT_ALTNAME_INVALID)/;

/** The agent does not respond, or ended before its response was complete. */
export class AgentConnectionLost extends ContainerConnectionLost {
  /** True if the request was not sent: it is safe to retry. */
  readonly wasNotSent: boolean;

  constructor(cause: unknown) {
    const { code = "" } = cause as NodeJS.ErrnoException;
    const what = certificateCodes.test(code)
      ? "the certificate of the instance agent is not accepted"
      : "the connection to the instance agent is lost";
    super(`${what}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = "AgentConnectionLost";
    this.wasNotSent = notSentCodes.has(code);
  }
}

function tlsOptions({ caPem, serverName, certificate }: AgentTlsOptions) {
  return {
    ca: caPem,
    // TLS sends no IP addresses as names of servers: the certificate is checked for the connection's address instead.
    ...(isIP(serverName) === 0 ? { servername: serverName } : {}),
    ...(certificate === undefined ? {} : { cert: certificate.certificatePem, key: certificate.keyPem }),
  };
}

const hostOf = (host: string) => (host.includes(":") ? `[${host}]` : host);
