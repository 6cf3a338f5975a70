import { randomUUID } from "node:crypto";
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

/** The TLS options of a client: the certificates that it trusts, and its own. */
export interface AgentTlsOptions {
  /**
   * PEM of the trusted authorities, or of the agent's self-signed certificate. It may contain several certificates
   * during a rotation.
   */
  readonly caPem: string;
  /** The name or IP address that the agent's certificate must be valid for. */
  readonly serverName: string;
  /** The client's own certificate; absent if the agent requires none. */
  readonly certificate?: Certificate;
}

/** The address of an agent, and the TLS options for connections to it. */
export interface AgentDestination {
  readonly address: AgentAddress;
  /** Null for an agent without TLS. */
  readonly trust: AgentTlsOptions | null;
}

export interface AgentConnectionOptions {
  /** Null if the agent has no address yet: requests fail as not sent until `moveTo` is called. */
  readonly address: AgentAddress | null;
  readonly token: string | null;
  /** Null for an agent without TLS. */
  readonly trust: AgentTlsOptions | null;
  /** The epoch of the platform; null if no other platform can acquire its records. */
  readonly epoch: number | null;
  readonly connectMsMax: number;
}

export interface AgentHttpRequest {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly body?: Dispatcher.DispatchOptions["body"];
  readonly signal?: AbortSignal;
  /** Maximum time without data of the response, in milliseconds. No limit by default. */
  readonly readTimeoutMs?: number;
}

export interface AgentResponse {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The caller must read the body to its end or destroy it. */
  readonly body: Readable;
}

const noAddressCode = "ADDRESS_UNKNOWN";

/** Codes of errors that occur before a connection is open, so that the request was not sent. */
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

/** Sends HTTP requests to an agent. Each request has a connection of the pool to itself. */
export class AgentConnection implements AsyncDisposable {
  #options: AgentConnectionOptions;
  readonly #headers: Record<string, string>;
  #pool: Pool | null;

  constructor(options: AgentConnectionOptions) {
    const { token, epoch } = options;
    this.#options = options;
    this.#pool = openPool(options);
    this.#headers = {
      [agentHeaders.protocol]: agentProtocolVersion,
      [agentHeaders.client]: randomUUID(),
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(epoch === null ? {} : { [agentHeaders.epoch]: String(epoch) }),
    };
  }

  /**
   * Sends a request. Rejects with the error in the agent's response, AgentProtocolError, or the signal's reason.
   * Rejects with AgentConnectionLost if the agent does not respond.
   */
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
    // Without this listener, a connection that breaks after the body was destroyed would terminate the process.
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

  /** Aborts all requests in flight with AgentConnectionLost. Later requests open new connections. */
  abortAll(cause: Error): void {
    const aborted = this.#pool;
    this.#pool = openPool(this.#options);
    void aborted?.destroy(cause);
  }

  /** Sends later requests to another address. Requests in flight continue at the previous address. */
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

/** Matches the error codes for an agent's certificate that the client rejects. */
const certificateCodes = /^(?:CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|ERR_TLS_CERT_ALTNAME_INVALID)/;

/** The error if the agent does not respond, or if its connection closes before the response is complete. */
export class AgentConnectionLost extends ContainerConnectionLost {
  /** True if the request was not sent, so that it is safe to retry. */
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
    // TLS does not allow IP addresses in `servername`. Without it, Node checks the certificate against the connection's
    // address.
    ...(isIP(serverName) === 0 ? { servername: serverName } : {}),
    ...(certificate === undefined ? {} : { cert: certificate.certificatePem, key: certificate.keyPem }),
  };
}

const hostOf = (host: string) => (host.includes(":") ? `[${host}]` : host);
