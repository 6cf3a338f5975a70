import { Readable } from "node:stream";
import { openDeadline } from "@galatea/base";
import {
  ModelLoadError,
  ModelMissingError,
  ModelNotReadyError,
  type ModelCacheLease,
  type ModelCache,
} from "../model-cache/index.ts";
import {
  errorText,
  InstanceFailure,
  NotAdmitted,
  type ContainerClient,
  type ContainerReply,
  type WholeReply,
} from "../instances/index.ts";
import { ContainerGone, ContainerLate, NotSent } from "./agent-errors.ts";
import type { AgentReply, AgentRequest, AcquiredModel, GatheredRequest } from "./instance-agent.ts";
import type { RunningContainer } from "./running-container.ts";

/** Sends a request to a single-model container. */
export async function exchange(running: RunningContainer, request: AgentRequest): Promise<AgentReply> {
  return await post(running, request.containerPath ?? "/invocations", request);
}

/** Sends a request to a single-model container and buffers the response. A request that was not sent is repeated once, as in `exchange`. */
export async function exchangeWhole(running: RunningContainer, request: GatheredRequest): Promise<WholeReply> {
  const { container } = running;
  const { client } = container;
  const { signal } = request;
  const send = (to: ContainerClient) => to.invokeWhole({ ...request, path: "/invocations" });
  try {
    const healthy =
      client === null || client.isSuspect
        ? await waited(running, signal, (limit) => container.trustedClient(limit))
        : client;
    return await withSuccessor(running, { client: healthy, mayRepeat: true, signal }, send);
  } catch (error) {
    throw reported(error, signal);
  }
}

/** A loaded model of a container in this process. */
export class RunningLease implements AcquiredModel {
  readonly cacheHit: boolean;
  readonly waitedUs: number;
  readonly #running: RunningContainer;
  readonly #models: ModelCache;
  readonly #target: string;
  readonly #demand: Disposable;
  /** One lease, and one more for each time that the container had lost the model. */
  readonly #leases: ModelCacheLease[];

  constructor(
    running: RunningContainer,
    of: {
      readonly models: ModelCache;
      readonly target: string;
      readonly lease: ModelCacheLease;
      readonly demand: Disposable;
    },
  ) {
    this.#running = running;
    this.#models = of.models;
    this.#target = of.target;
    this.#demand = of.demand;
    this.#leases = [of.lease];
    this.cacheHit = of.lease.cacheHit;
    this.waitedUs = of.lease.waitedUs;
  }

  /**
   * Sends a request; sends it once more after a 404 (the container lost the model: it is loaded again) or a 507 (an idle model is unloaded first).
   */
  async invoke(request: AgentRequest): Promise<AgentReply> {
    const models = this.#models;
    const path = this.#path(request);
    const reply = await post(this.#running, path, request);
    if (!Buffer.isBuffer(request.body) || (reply.status !== 404 && reply.status !== 507)) return reply;
    const text = await errorText(reply.body);
    if (reply.status === 507) {
      if (!(await models.makeRoom())) return { ...reply, body: Readable.from([Buffer.from(text)]) };
      return await post(this.#running, path, request);
    }
    // An empty 404 is the contract's "not loaded"; a 404 with a body is the model's own response.
    if (text !== "") return { ...reply, body: Readable.from([Buffer.from(text)]) };
    models.forget(this.#id);
    this.#leases.push(await models.acquire(this.#target, request.signal));
    return await post(this.#running, this.#path(request), request);
  }

  [Symbol.dispose](): void {
    this.#demand[Symbol.dispose]();
    for (const lease of this.#leases) lease[Symbol.dispose]();
  }

  get #id(): string {
    return this.#leases.at(-1)?.id ?? "";
  }

  #path({ containerPath = "/invoke" }: AgentRequest): string {
    return `/models/${this.#id}${containerPath}`;
  }
}

/**
 * Sends a request to a healthy container. A request that was not sent is repeated once, by the caller on another instance (`NotSent`) or
 * here on the restarted container. After a connection that broke later it is not repeated, because the model may have executed the request.
 */
async function post(
  running: RunningContainer,
  path: string,
  { headers, body, signal, mayGoElsewhere, isStreamed }: AgentRequest,
): Promise<ContainerReply> {
  const { container } = running;
  const { client } = container;
  const isHealthy = client !== null && !client.isSuspect;
  if (!isHealthy && mayGoElsewhere) throw new NotSent();
  try {
    const healthy = isHealthy ? client : await waited(running, signal, (limit) => container.trustedClient(limit));
    const sent = { path, headers: { ...headers }, body, isStreamed, signal };
    const mayRepeat = Buffer.isBuffer(body);
    if (!mayGoElsewhere || !mayRepeat) {
      return await withSuccessor(running, { client: healthy, mayRepeat, signal }, (to) => to.invoke(sent));
    }
    try {
      return await healthy.invoke(sent);
    } catch (error) {
      if (healthy.wasNotSent(error)) throw new NotSent({ cause: error });
      throw error;
    }
  } catch (error) {
    throw reported(error, signal);
  }
}

const contractErrors = [
  ContainerGone,
  InstanceFailure,
  ModelLoadError,
  ModelMissingError,
  ModelNotReadyError,
  NotAdmitted,
  NotSent,
];

/** Converts an error of the connection to ContainerGone; returns errors of the contract unchanged. */
function reported(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted || contractErrors.some((kind) => error instanceof kind)) return error;
  return new ContainerGone(error instanceof Error ? error.message : String(error), { cause: error });
}

async function withSuccessor<Reply>(
  running: RunningContainer,
  {
    client,
    mayRepeat,
    signal,
  }: { readonly client: ContainerClient; readonly mayRepeat: boolean; readonly signal: AbortSignal },
  send: (client: ContainerClient) => Promise<Reply>,
): Promise<Reply> {
  try {
    return await send(client);
  } catch (error) {
    if (!mayRepeat || !client.wasNotSent(error)) throw error;
    const { container } = running;
    const successor = await waited(running, signal, (limit) => container.successor(client, limit)).catch(() => {
      throw error;
    });
    return await send(successor);
  }
}

/** Waits for a container that restarts, for `restartWaitMsMax`; rejects with ContainerLate after that. */
async function waited<Value>(
  { clock, restartWaitMsMax }: RunningContainer,
  signal: AbortSignal,
  wait: (limit: AbortSignal) => Promise<Value>,
): Promise<Value> {
  using limit = openDeadline({ clock, afterMs: restartWaitMsMax, signal, late: () => new ContainerLate() });
  return await wait(limit.signal);
}
