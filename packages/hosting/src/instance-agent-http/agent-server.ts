import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import { TLSSocket } from "node:tls";
import {
  assert,
  ChangeNotifier,
  delay,
  readToBuffer,
  rejectOnAbort,
  TaskGroup,
  type Clock,
  type Logger,
} from "@galatea/base";
import type { Certificate } from "@galatea/base/certificates";
import {
  ContainerConnectionLost,
  UnknownInstance,
  type AcquiredModel,
  type AgentContainer,
  type AgentInstance,
  type AgentInstanceSpec,
  type InstanceAgent,
  type OnStartFailure,
} from "../instance-agent/index.ts";
import {
  AgentProtocolError,
  PlatformSuperseded,
  bufferedBodyBytesMax,
  containerHeaderPrefix,
  errorToWire,
  agentHeaders,
  agentProtocolVersion,
  type WireState,
} from "./agent-protocol.ts";
import { writeEventStream } from "./event-stream.ts";
import { InstanceUses } from "./instance-uses.ts";

export type AgentAddress =
  | { readonly kind: "socket"; readonly path: string }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number };

export interface AgentServerLimits {
  /** Maximum number of concurrent requests, including event streams and leases. */
  readonly requestsMax: number;
  /** Maximum bytes of the spec in a PUT request. */
  readonly specBytesMax: number;
  /** Maximum bytes of a body that is buffered, so that it can be sent again. */
  readonly bufferedBytesMax: number;
}

export const agentServerLimits: AgentServerLimits = {
  requestsMax: 4096,
  specBytesMax: 4 * 2 ** 20,
  bufferedBytesMax: bufferedBodyBytesMax,
};

export interface AgentServerOptions {
  /** The agent to serve. The caller owns it: disposal of the server does not dispose the agent. */
  readonly agent: InstanceAgent;
  readonly listen: AgentAddress;
  /**
   * Bearer token that clients must send. Null if client certificates or the permissions of a Unix socket protect the
   * agent.
   */
  readonly token: string | null;
  /** Null for plain HTTP, which is allowed only on a Unix socket or a loopback address. */
  readonly certificate: Certificate | null;
  /** PEM of the authorities that must have signed clients' certificates. By default, clients need no certificate. */
  readonly clientCaPem?: string | null;
  readonly limits: AgentServerLimits;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Idle time of a connection before the first of ten TCP keep-alive probes, in milliseconds. Probes are one second apart. */
const keepAliveDelayMs = 10_000;
/** Maximum time in which a request that was sent before the end of another connection arrives, in milliseconds. */
const transitMs = 500;

interface RoutedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: readonly string[];
  readonly query: URLSearchParams;
  /** Aborts when the client disconnects or the server closes. */
  readonly signal: AbortSignal;
}

/** Serves an agent to clients in other processes. */
export class AgentServer implements AsyncDisposable {
  readonly #options: AgentServerOptions;
  readonly #server: Server;
  readonly #tasks: TaskGroup;
  readonly #instances = new Map<string, AgentInstance>();
  readonly #leases = new Map<string, AcquiredModel>();
  #leaseCount = 0;
  #requestCount = 0;
  readonly #uses: InstanceUses;
  #followerCount = 0;
  #invocationCount = 0;
  /** The highest epoch of a client. Clients with a lower epoch are rejected. */
  #epoch = 0;
  readonly #followersChanged = new ChangeNotifier();
  /** Notifies when an invocation or a lease has ended. */
  readonly #ended = new ChangeNotifier();

  private constructor(options: AgentServerOptions) {
    this.#options = options;
    this.#uses = new InstanceUses(options.clock);
    this.#tasks = new TaskGroup((error) => options.logger.warning("a request failed", { error: String(error) }));
    const serve = (request: IncomingMessage, response: ServerResponse) =>
      this.#tasks.run((closing) => this.#serve(request, response, closing));
    // Without keep-alive probes, leases of a client whose machine has failed would pin their models for ever.
    const sockets = { keepAlive: true, keepAliveInitialDelay: keepAliveDelayMs };
    const { certificate, clientCaPem = null } = options;
    // `#admit` rejects unauthorized certificates with an error response. If the TLS handshake rejected them, the client
    // would not learn the reason.
    const clients = clientCaPem === null ? {} : { requestCert: true, rejectUnauthorized: false };
    this.#server =
      certificate === null
        ? createHttpServer(sockets, serve)
        : createTlsServer({ ...sockets, ...clients, ...secureContextOf(certificate, clientCaPem) }, serve);
    this.#server.on("tlsClientError", (error, { remoteAddress }) =>
      options.logger.warning("a connection to the agent is refused", {
        from: remoteAddress ?? "",
        error: error.message,
      }),
    );
    // The duration of a request is limited by the client only.
    this.#server.requestTimeout = 0;
  }

  static async open(options: AgentServerOptions): Promise<AgentServer> {
    const { listen, token, certificate, clientCaPem = null } = options;
    if (clientCaPem !== null && certificate === null)
      throw new Error("an agent that requires certificates of its clients needs one itself");
    if (listen.kind === "tcp" && token === null && clientCaPem === null)
      throw new Error("an agent listens at a port only with a token, or with an authority of clients' certificates");
    if (listen.kind === "tcp" && certificate === null && !isLoopback(listen.host)) {
      throw new Error(`an agent listens at ${listen.host}, which other machines reach, only with a certificate`);
    }
    const server = new AgentServer(options);
    server.#server.listen(listen.kind === "socket" ? { path: listen.path } : { host: listen.host, port: listen.port });
    await once(server.#server, "listening");
    return server;
  }

  get address(): AgentAddress {
    const { listen } = this.#options;
    return listen.kind === "socket" ? listen : { ...listen, port: (this.#server.address() as AddressInfo).port };
  }

  /**
   * Replaces the server's certificate and the authorities of client certificates. Open connections are not affected.
   */
  setCertificate(certificate: Certificate, clientCaPem = this.#options.clientCaPem ?? null): void {
    assert(this.#server instanceof TlsServer, "a server without TLS has no certificate to replace");
    this.#server.setSecureContext(secureContextOf(certificate, clientCaPem));
  }

  /** True while at least one client reads the agent's events. */
  get isFollowed(): boolean {
    return this.#followerCount > 0;
  }

  /** Resolves when `isFollowed` may have changed. */
  followersChanged(): Promise<void> {
    return this.#followersChanged.nextChange();
  }

  /** Resolves when no invocation is in flight and no model is leased. */
  async idle(signal: AbortSignal): Promise<void> {
    while (this.#invocationCount > 0 || this.#leases.size > 0) await rejectOnAbort(this.#ended.nextChange(), signal);
  }

  /**
   * Resolves when the agent has been idle for `transitMs`: requests that a client sent before it disconnected may arrive
   * shortly afterwards.
   */
  async quiet(signal: AbortSignal): Promise<void> {
    do {
      await this.idle(signal);
      await delay(this.#options.clock, transitMs, signal);
    } while (this.#invocationCount > 0 || this.#leases.size > 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await this.#tasks[Symbol.asyncDispose]();
  }

  async #serve(request: IncomingMessage, response: ServerResponse, closing: AbortSignal): Promise<void> {
    const disconnected = new AbortController();
    response.on("close", () => disconnected.abort(new Error("the client disconnected")));
    response.on("error", () => {});
    const { pathname, searchParams: query } = new URL(request.url ?? "/", "http://agent");
    const path = pathname.split("/").slice(1).map(decodeURIComponent);
    response.setHeader(agentHeaders.protocol, agentProtocolVersion);
    this.#requestCount += 1;
    try {
      this.#admit(request);
      await this.#route({ request, response, path, query, signal: AbortSignal.any([disconnected.signal, closing]) });
    } catch (error) {
      if (response.headersSent || disconnected.signal.aborted) response.destroy();
      else sendError(response, error);
    } finally {
      this.#requestCount -= 1;
    }
  }

  #admit({ headers: sent, socket }: IncomingMessage): void {
    const { token, limits, clientCaPem = null } = this.#options;
    if (clientCaPem !== null) this.#checkCertificate(socket);
    if (token !== null && !isToken(sent.authorization ?? "", token)) {
      throw new AgentProtocolError("The token of this client is not valid");
    }
    const version = sent[agentHeaders.protocol];
    if (version !== agentProtocolVersion) {
      const text = `The agent speaks version ${agentProtocolVersion} of its protocol, and the client ${String(version ?? "none")}: run the same version of Galatea on both`;
      throw new AgentProtocolError(text);
    }
    if (this.#requestCount > limits.requestsMax) {
      throw new ContainerConnectionLost(`The agent serves at most ${limits.requestsMax} requests at a time`);
    }
    this.#checkEpoch(sent);
  }

  /** Rejects a platform that has lost its records to another one. Without this, it could end the other one's instances. */
  #checkEpoch({ [agentHeaders.epoch]: text }: IncomingMessage["headers"]): void {
    if (text === undefined) return;
    const epoch = Number(text);
    if (!Number.isSafeInteger(epoch)) throw new AgentProtocolError("The epoch of this client is not a number");
    if (epoch < this.#epoch) throw new PlatformSuperseded();
    this.#epoch = epoch;
  }

  #checkCertificate(socket: Socket): void {
    if (socket instanceof TLSSocket && socket.authorized) return;
    const reason = socket instanceof TLSSocket ? String(socket.authorizationError) : "no TLS";
    const from = socket.remoteAddress ?? "";
    this.#options.logger.warning("a client's certificate is not accepted", { from, reason });
    throw new AgentProtocolError(
      `The agent does not accept the certificate of this client (${reason}): an authority of the agent's --tls-ca has to sign it`,
    );
  }

  async #route(routed: RoutedRequest): Promise<void> {
    const { path, request, response, query, signal } = routed;
    const { agent, clock } = this.#options;
    const [kind, id = "", segment, position = "", action, model] = path;
    const route = `${request.method} ${kind}${id === "" ? "" : "/id"}${segment === undefined ? "" : `/${segment}`}${action === undefined ? "" : `/${action}`}`;
    switch (route) {
      case "GET state": {
        const state: WireState = { ...(await agent.state()), atNs: clock.monotonicNs() };
        return sendJson(response, state);
      }
      case "GET events": {
        const after = query.get("after");
        using _follower = this.#follow();
        return await writeEventStream(response, {
          agent,
          clock,
          after: after === null ? undefined : Number(after),
          signal,
        });
      }
      case "PUT instances/id":
        return sendJson(response, { existed: await this.#put(routed) });
      case "DELETE instances/id": {
        const instance = await this.#find(id);
        const how = query.get("how") === "shutDown" ? "shutDown" : "delete";
        using _drained = await this.#uses.drain(id, clientOf(request), signal);
        return sendJson(response, { existed: (await instance?.[how]()) ?? false });
      }
      case "GET instances/id/usages":
        return sendJson(response, await (await this.#instance(id)).usages());
      case "POST instances/id/containers/invocations":
        return await this.#invoke(routed, await this.#container(id, position));
      case "GET instances/id/containers/execution-parameters":
        return sendJson(response, await (await this.#container(id, position)).executionParameters(signal));
      case "POST instances/id/containers/models":
        return await this.#acquire(routed, await this.#container(id, position));
      case "DELETE instances/id/containers/models":
        (await this.#container(id, position)).release(model ?? "");
        return sendJson(response, null);
      case "POST instances/id/containers/rechecks":
        (await this.#container(id, position)).recheck(query.get("target") ?? "");
        return sendJson(response, null);
      default:
        throw new AgentProtocolError(`The agent has no route ${request.method} ${request.url}`);
    }
  }

  async #put({ request, path: [, id] }: RoutedRequest): Promise<boolean> {
    const bytesMax = this.#options.limits.specBytesMax;
    const body = await readToBuffer(
      request,
      bytesMax,
      () => new AgentProtocolError(`A spec has at most ${bytesMax} bytes`),
    );
    // Another platform may have acquired the records while the body arrived.
    this.#checkEpoch(request.headers);
    const { spec, onStartFailure } = JSON.parse(body.toString("utf8")) as {
      readonly spec: AgentInstanceSpec;
      readonly onStartFailure: OnStartFailure;
    };
    if (spec.id !== id) throw new AgentProtocolError("The spec belongs to another instance");
    const instance = this.#open(spec);
    const existed = await instance.put(onStartFailure);
    this.#instances.set(spec.id, instance);
    return existed;
  }

  async #invoke(routed: RoutedRequest, container: AgentContainer): Promise<void> {
    using _used = this.#use(routed);
    const { request, response, signal } = routed;
    this.#invocationCount += 1;
    using _counted = defer(() => {
      this.#invocationCount -= 1;
      this.#ended.notify();
    });
    const { headers: sent } = request;
    const number = sent[agentHeaders.lease];
    const invoked = number === undefined ? container : this.#leases.get(String(number));
    if (invoked === undefined) throw new ContainerConnectionLost("the model is no longer leased");
    const isBuffered = sent[agentHeaders.isBuffered] !== undefined;
    const bytesMax = this.#options.limits.bufferedBytesMax;
    const tooLong = () => new AgentProtocolError(`A buffered body has at most ${bytesMax} bytes`);
    const reply = await invoked.invoke({
      containerPath: sent[agentHeaders.path] as string | undefined,
      headers: containerHeaders(sent),
      body: isBuffered ? await readToBuffer(request, bytesMax, tooLong) : request,
      isStreamed: sent[agentHeaders.isStreamed] !== undefined,
      mayGoElsewhere: sent[agentHeaders.mayGoElsewhere] !== undefined,
      signal,
    });
    response.setHeader(agentHeaders.status, reply.status);
    for (const [name, value] of Object.entries(reply.headers)) {
      if (value !== undefined) response.setHeader(`${containerHeaderPrefix}${name}`, value);
    }
    response.writeHead(200);
    response.flushHeaders();
    await pipeline(reply.body, response);
  }

  /**
   * Acquires a model and keeps the lease while the response is open. The client releases the lease by closing the
   * connection.
   */
  async #acquire(routed: RoutedRequest, container: AgentContainer): Promise<void> {
    using _used = this.#use(routed);
    const { response, query, signal } = routed;
    using model = await container.acquire(query.get("target") ?? "", signal);
    const number = String((this.#leaseCount += 1));
    this.#leases.set(number, model);
    try {
      const { cacheHit, waitedUs } = model;
      response.writeHead(200, {
        [agentHeaders.lease]: number,
        [agentHeaders.cacheHit]: String(cacheHit),
        [agentHeaders.waitedUs]: String(waitedUs),
      });
      response.flushHeaders();
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    } finally {
      this.#leases.delete(number);
      this.#ended.notify();
    }
  }

  /** Counts a request of an instance. Rejects it if the instance is being deleted, unless its client has leased a model. */
  #use({ path: [, id = ""], request }: RoutedRequest): Disposable {
    const hasLease = request.headers[agentHeaders.lease] !== undefined;
    if (this.#uses.isEnding(id) && !hasLease) throw new UnknownInstance(`instance ${id}, which is being deleted`);
    return this.#uses.begin(id, clientOf(request));
  }

  /** Counts an event stream until the result is disposed. */
  #follow(): Disposable {
    const add = (count: 1 | -1) => {
      this.#followerCount += count;
      this.#followersChanged.notify();
    };
    add(1);
    return defer(() => add(-1));
  }

  #open(spec: AgentInstanceSpec): AgentInstance {
    const instance: AgentInstance = this.#options.agent.instance(spec, (event) => {
      if (event.kind === "ended" && this.#instances.get(spec.id) === instance) this.#instances.delete(spec.id);
    });
    return instance;
  }

  /**
   * Returns an instance; null if the agent does not run it. An instance that was started by another client is looked up
   * in the agent's state.
   */
  async #find(id: string): Promise<AgentInstance | null> {
    const known = this.#instances.get(id);
    if (known !== undefined) return known;
    const { instances } = await this.#options.agent.state();
    const listed = instances.find(({ spec }) => spec.id === id);
    if (listed === undefined) return null;
    const instance = this.#open(listed.spec);
    if (await instance.attach()) this.#instances.set(id, instance);
    return instance;
  }

  async #instance(id: string): Promise<AgentInstance> {
    const instance = await this.#find(id);
    if (instance === null) throw new UnknownInstance(`instance ${id}`);
    return instance;
  }

  async #container(id: string, position: string): Promise<AgentContainer> {
    const container = (await this.#instance(id)).containers[Number(position)];
    if (container === undefined) throw new UnknownInstance(`container ${position} of instance ${id}`);
    return container;
  }
}

const secureContextOf = ({ certificatePem, keyPem }: Certificate, clientCaPem: string | null) => ({
  cert: certificatePem,
  key: keyPem,
  ...(clientCaPem === null ? {} : { ca: clientCaPem }),
});

const clientOf = ({ headers: sent }: IncomingMessage) => String(sent[agentHeaders.client] ?? "");

const defer = (end: () => void): Disposable => ({ [Symbol.dispose]: end });

const isLoopback = (host: string) => host === "::1" || host.startsWith("127.");

function containerHeaders(sent: IncomingMessage["headers"]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(sent)) {
    if (typeof value === "string" && name.startsWith(containerHeaderPrefix))
      found[name.slice(containerHeaderPrefix.length)] = value;
  }
  return found;
}

/**
 * Returns whether an Authorization header contains the token. Hashes are compared in constant time, so that the
 * duration does not reveal the token.
 */
function isToken(authorization: string, token: string): boolean {
  const hash = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(authorization), hash(`Bearer ${token}`));
}

function sendJson(response: ServerResponse, value: unknown): void {
  assert(!response.headersSent, "a request has one response");
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(value));
}

function sendError(response: ServerResponse, error: unknown): void {
  const wire = errorToWire(error);
  response.statusCode = wire.code === "protocol" ? 400 : 503;
  response.setHeader(agentHeaders.error, wire.code);
  response.setHeader("connection", "close");
  sendJson(response, wire);
}
