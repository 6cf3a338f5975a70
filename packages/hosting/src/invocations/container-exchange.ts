import type { Readable } from "node:stream";
import { openDeadline, type Clock } from "@galatea/base";
import type { ModelAgent, AgentLease } from "../agent/index.ts";
import {
  errorText,
  errorTextBytesMax,
  type ContainerClient,
  type ContainerReply,
  type InstanceContainer,
  type WholeReply,
  type WholeRequest,
} from "../instances/index.ts";
import { NotBegun, type InvocationRequest } from "./invocation.ts";
import { containerError, type InvocationPlace } from "./invocation-errors.ts";

/** A container of an instance, and the agent of its models where it has many. */
export interface InvokedContainer {
  readonly container: InstanceContainer;
  readonly agent: ModelAgent | null;
  readonly place: InvocationPlace;
  /** Where the models of a multi-model container come from; empty for others. */
  readonly modelDataUrl: string;
}

/** Where a request goes. */
export interface ExchangeTarget extends InvokedContainer {
  readonly clock: Clock;
  readonly restartWaitMsMax: number;
}

/** Returns the header that tells a container how long its caller waits, in milliseconds: after that it may end the call's execution. */
export function callLimitHeader(limitMs: number): Readonly<Record<string, string>> {
  return { "x-galatea-call-limit-ms": String(limitMs) };
}

export interface ContainerExchange {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | Readable;
  readonly signal: AbortSignal;
  /** Rejects with NotBegun instead of waiting for the container's successor: there is another instance. */
  readonly mayGoElsewhere: boolean;
  readonly isStreamed: boolean;
}

/**
 * One exchange with the container, and a second one for a model that it lost (404) or could not run for want of memory (507). A lease
 * of the model that is loaded again is added to `leases`, which the caller releases.
 */
export async function exchange(
  target: ExchangeTarget,
  { request, leases }: { readonly request: InvocationRequest; readonly leases: AgentLease[] },
  sent: ContainerExchange,
): Promise<ContainerReply> {
  const { agent, place } = target;
  const [lease] = leases;
  if (lease === undefined || agent === null) return await post(target, request.containerPath ?? "/invocations", sent);
  const path = `/models/${lease.id}${request.containerPath ?? "/invoke"}`;
  const reply = await post(target, path, sent);
  if (!Buffer.isBuffer(sent.body) || (reply.status !== 404 && reply.status !== 507)) return reply;
  const text = await errorText(reply.body);
  if (reply.status === 507) {
    if (!(await agent.makeRoom())) throw containerError(507, text, place);
    return await post(target, path, sent);
  }
  // An empty 404 is the contract's "not loaded"; one with a text is the model's own answer.
  if (text !== "") throw containerError(404, text, place);
  agent.forget(lease.id);
  const again = await agent.acquire(request.targetModel ?? "", request.signal);
  leases.push(again);
  return await post(target, `/models/${again.id}${request.containerPath ?? "/invoke"}`, sent);
}

/**
 * A refused connection was never a request: it is made again, once, to another instance or to the container's successor. Anything that
 * broke later is told to the client, because the model may have acted on it.
 */
async function post(
  target: ExchangeTarget,
  path: string,
  { headers, body, signal, mayGoElsewhere, isStreamed }: ContainerExchange,
): Promise<ContainerReply> {
  const { container } = target;
  const { client } = container;
  const isTrusted = client !== null && !client.isSuspect;
  if (!isTrusted && mayGoElsewhere) throw new NotBegun();
  const trusted = isTrusted ? client : await waited(target, signal, (limit) => container.trustedClient(limit));
  const sent = { path, headers: { ...headers }, body, isStreamed, signal };
  const mayRepeat = Buffer.isBuffer(body);
  if (!mayGoElsewhere || !mayRepeat) {
    return await withSuccessor(target, { client: trusted, mayRepeat, signal }, (asked) => asked.invoke(sent));
  }
  try {
    return await trusted.invoke(sent);
  } catch (error) {
    if (trusted.hadNotBegun(error)) throw new NotBegun({ cause: error });
    throw error;
  }
}

/** The whole answer of a container that has no models to be named. Made again as `post` does; rejects with what `admit` throws. */
export async function exchangeWhole(target: ExchangeTarget, request: Omit<WholeRequest, "path">): Promise<WholeReply> {
  const { client } = target.container;
  const { signal } = request;
  const ask = (asked: ContainerClient) => asked.invokeWhole({ ...request, path: "/invocations" });
  const trusted =
    client === null || client.isSuspect
      ? await waited(target, signal, (limit) => target.container.trustedClient(limit))
      : client;
  const reply = await withSuccessor(target, { client: trusted, mayRepeat: true, signal }, ask);
  if (reply.status >= 200 && reply.status <= 299) return reply;
  throw containerError(reply.status, reply.body.subarray(0, errorTextBytesMax).toString("utf8"), target.place);
}

async function withSuccessor<Reply>(
  target: ExchangeTarget,
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
    if (!mayRepeat || !client.hadNotBegun(error)) throw error;
    const successor = await waited(target, signal, (limit) => target.container.successor(client, limit)).catch(() => {
      throw error;
    });
    return await ask(successor);
  }
}

/** For as long as a request waits for a container that is started again. */
async function waited<Value>(
  { clock, restartWaitMsMax }: Pick<ExchangeTarget, "clock" | "restartWaitMsMax">,
  signal: AbortSignal,
  wait: (limit: AbortSignal) => Promise<Value>,
): Promise<Value> {
  using limit = openDeadline({ clock, afterMs: restartWaitMsMax, signal });
  return await wait(limit.signal);
}
