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

/** One exchange with a container that has no models to be named. */
export async function exchange(running: RunningContainer, request: AgentRequest): Promise<AgentReply> {
  return await post(running, request.containerPath ?? "/invocations", request);
}

/** The whole reply of a container that has no models to be named, made again as `exchange` does. */
export async function exchangeWhole(running: RunningContainer, request: GatheredRequest): Promise<WholeReply> {
  const { container } = running;
  const { client } = container;
  const { signal } = request;
  const ask = (asked: ContainerClient) => asked.invokeWhole({ ...request, path: "/invocations" });
  try {
    const healthy =
      client === null || client.isSuspect
        ? await waited(running, signal, (limit) => container.trustedClient(limit))
        : client;
    return await withSuccessor(running, { client: healthy, mayRepeat: true, signal }, ask);
  } catch (error) {
    throw reported(error, signal);
  }
}

/** A model that is loaded in a running container. */
export class RunningLease implements AcquiredModel {
  readonly cacheHit: boolean;
  readonly waitedUs: number;
  readonly #running: RunningContainer;
  readonly #models: ModelCache;
  readonly #target: string;
  readonly #asking: Disposable;
  /** A second one where the container lost the model. */
  readonly #leases: ModelCacheLease[];

  constructor(
    running: RunningContainer,
    of: {
      readonly models: ModelCache;
      readonly target: string;
      readonly lease: ModelCacheLease;
      readonly asking: Disposable;
    },
  ) {
    this.#running = running;
    this.#models = of.models;
    this.#target = of.target;
    this.#asking = of.asking;
    this.#leases = [of.lease];
    this.cacheHit = of.lease.cacheHit;
    this.waitedUs = of.lease.waitedUs;
  }

  /** A second exchange follows for a model that the container lost (404) or could not run for want of memory (507). */
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
    // An empty 404 is the contract's "not loaded"; one with a text is the model's own reply.
    if (text !== "") return { ...reply, body: Readable.from([Buffer.from(text)]) };
    models.forget(this.#id);
    this.#leases.push(await models.acquire(this.#target, request.signal));
    return await post(this.#running, this.#path(request), request);
  }

  [Symbol.dispose](): void {
    this.#asking[Symbol.dispose]();
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
 * A refused connection was never a request: it is made again, once, to another instance or to the container's successor. A connection
 * that broke later is reported, because the model may have acted on the request.
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
      return await withSuccessor(running, { client: healthy, mayRepeat, signal }, (asked) => asked.invoke(sent));
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

const own = [
  ContainerGone,
  InstanceFailure,
  ModelLoadError,
  ModelMissingError,
  ModelNotReadyError,
  NotAdmitted,
  NotSent,
];

/** An error of the connection becomes one of the contract. */
function reported(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted || own.some((kind) => error instanceof kind)) return error;
  return new ContainerGone(error instanceof Error ? error.message : String(error), { cause: error });
}

async function withSuccessor<Reply>(
  running: RunningContainer,
  {
    client,
    mayRepeat,
    signal,
  }: { readonly client: ContainerClient; readonly mayRepeat: boolean; readonly signal: AbortSignal },
  ask: (client: ContainerClient) => Promise<Reply>,
): Promise<Reply> {
  try {
    return await ask(client);
  } catch (error) {
    if (!mayRepeat || !client.wasNotSent(error)) throw error;
    const { container } = running;
    const successor = await waited(running, signal, (limit) => container.successor(client, limit)).catch(() => {
      throw error;
    });
    return await ask(successor);
  }
}

/** For as long as a request waits for a container that is started again. */
async function waited<Value>(
  { clock, restartWaitMsMax }: RunningContainer,
  signal: AbortSignal,
  wait: (limit: AbortSignal) => Promise<Value>,
): Promise<Value> {
  using limit = openDeadline({ clock, afterMs: restartWaitMsMax, signal, late: () => new ContainerLate() });
  return await wait(limit.signal);
}
