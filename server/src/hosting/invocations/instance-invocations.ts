import type { Readable } from "node:stream";
import { AwsError, openDeadline, readWhole, takeForCall, type ByteLease } from "../../base/index.ts";
import type { ModelAgent, AgentLease } from "../agent/index.ts";
import { errorText, type ContainerReply } from "../instances/index.ts";
import type { VariantMetrics } from "../series/index.ts";
import { exchange, type ExchangeTarget } from "./container-exchange.ts";
import { heldBytesMax, type InvocationLimits, type InvocationReply, type InvocationRequest } from "./invocation.ts";
import { containerError, modelErrorOf, timeoutText, tooLong } from "./invocation-errors.ts";
import { beginOutcome, recordOutcome, type InvocationOutcome } from "./invocation-outcome.ts";

export interface InstanceInvocationsOptions extends Omit<ExchangeTarget, "restartWaitMsMax"> {
  readonly variantName: string;
  /** Where the models of a multi-model instance come from; empty for others. */
  readonly modelDataUrl: string;
  readonly metrics: VariantMetrics;
  readonly limits: InvocationLimits;
}

/**
 * The invocations of one instance: each waits for its model where there are many, is sent to the container, and is recorded once when
 * it is over.
 */
export class InstanceInvocations {
  readonly #options: InstanceInvocationsOptions;
  readonly #target: ExchangeTarget;
  #inFlightCount = 0;

  constructor(options: InstanceInvocationsOptions) {
    this.#options = options;
    const { instance, agent, place, clock, limits } = options;
    this.#target = { instance, agent, place, clock, restartWaitMsMax: limits.restartWaitMsMax };
  }

  get inFlightCount(): number {
    return this.#inFlightCount;
  }

  /** Throws AwsError with the codes and sentences of SageMaker's runtime, or the request's own signal's reason. */
  async invoke(request: InvocationRequest): Promise<InvocationReply> {
    if (this.#inFlightCount >= this.#options.limits.requestsMax) {
      const text = "Too many requests are in flight on this instance";
      throw this.#refused(request, new AwsError("ServiceUnavailable", text, { statusFallback: 503 }));
    }
    this.#inFlightCount += 1;
    const outcome = beginOutcome(request);
    const leases: AgentLease[] = [];
    let finished = false;
    const finish = () => {
      if (finished) return;
      finished = true;
      this.#inFlightCount -= 1;
      for (const lease of leases) lease[Symbol.dispose]();
      this.#record(request, outcome);
    };
    try {
      const { agent } = this.#options;
      if (agent !== null) leases.push(await this.#lease(agent, request, outcome));
      const reply = await this.#send(request, leases, { outcome, finish });
      if (Buffer.isBuffer(reply.body)) finish();
      return reply;
    } catch (error) {
      if (error instanceof AwsError && outcome.status === 0) outcome.status = error.statusFallback;
      finish();
      throw error;
    }
  }

  /** The error for a request that waited too long for an instance. */
  unavailable(request: InvocationRequest): AwsError {
    const { instance, place } = this.#options;
    const text = `The container is not in service: ${instance.lastFailure}`;
    return this.#refused(request, containerError(503, text, place));
  }

  #refused(request: InvocationRequest, error: AwsError): AwsError {
    this.#record(request, { ...beginOutcome(request), status: 503 });
    return error;
  }

  #record(request: InvocationRequest, outcome: InvocationOutcome): void {
    const { metrics, clock } = this.#options;
    recordOutcome(metrics, outcome, clock.monotonicNs() - request.receivedNs);
  }

  async #lease(agent: ModelAgent, request: InvocationRequest, outcome: InvocationOutcome): Promise<AgentLease> {
    try {
      const lease = await agent.acquire(request.targetModel ?? "", request.signal);
      outcome.cacheHit = lease.cacheHit;
      outcome.waitedUs = lease.waitedUs;
      return lease;
    } catch (error) {
      throw modelErrorOf(error, this.#options.modelDataUrl, this.#options.place);
    }
  }

  async #send(
    request: InvocationRequest,
    leases: AgentLease[],
    { outcome, finish }: { readonly outcome: InvocationOutcome; readonly finish: () => void },
  ): Promise<InvocationReply> {
    const { limits, clock, place, variantName } = this.#options;
    const deadline = openDeadline({ clock, afterMs: limits.answerMsMax, signal: request.signal });
    let sentNs = clock.monotonicNs();
    const end = () => {
      outcome.modelNs = clock.monotonicNs() - sentNs;
      deadline[Symbol.dispose]();
    };
    try {
      const body = await request.body();
      sentNs = clock.monotonicNs();
      const sent = { headers: request.headers, body, signal: deadline.signal };
      const reply = await exchange(this.#target, { request, leases }, sent);
      outcome.status = reply.status;
      if (reply.status < 200 || reply.status > 299) {
        throw containerError(reply.status, await errorText(reply.body), place);
      }
      const received = await receive(reply, limits.responseBytesMax, request.memory);
      const isHeld = Buffer.isBuffer(received);
      if (isHeld) end();
      return {
        contentType: headerText(reply, "content-type"),
        customAttributes: headerText(reply, "x-amzn-sagemaker-custom-attributes"),
        variantName,
        body: received,
        byteLength: isHeld ? received.length : Number(headerText(reply, "content-length")),
        done: () => {
          end();
          finish();
        },
      };
    } catch (error) {
      end();
      if (error instanceof AwsError) throw error;
      if (request.signal.aborted) throw request.signal.reason;
      outcome.status = deadline.isLate ? 504 : 503;
      if (deadline.isLate) throw containerError(0, timeoutText, place);
      const text = error instanceof Error ? error.message : String(error);
      throw containerError(503, `The container did not answer: ${text}`, place);
    }
  }
}

function headerText(reply: ContainerReply, name: string): string | null {
  const value = reply.headers[name];
  return typeof value === "string" ? value : null;
}

/** Whole, up to a bound; a longer answer of known length streams. */
async function receive(reply: ContainerReply, bytesMax: number, memory: ByteLease): Promise<Buffer | Readable> {
  const stated = headerText(reply, "content-length");
  const length = stated === null ? null : Number(stated);
  if (length !== null && length > bytesMax) {
    reply.body.destroy();
    throw tooLong(bytesMax);
  }
  if (length !== null && length > heldBytesMax) return reply.body;
  try {
    if (length !== null) takeForCall(memory, length);
    const take = length === null ? (bytes: number) => takeForCall(memory, bytes) : null;
    return await readWhole(reply.body, bytesMax, () => tooLong(bytesMax), take);
  } catch (error) {
    reply.body.destroy();
    throw error;
  }
}
