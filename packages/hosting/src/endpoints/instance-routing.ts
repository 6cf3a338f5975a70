import { assert, AwsError, openDeadline, type Clock, type Logger } from "@galatea/base";
import type { VariantPlan } from "../definitions/index.ts";
import {
  ContainerConnectionLost,
  RequestNotSent,
  type InvocationLimits,
  type InvocationRequest,
} from "../invocations/index.ts";
import type { VariantMetrics } from "../series/index.ts";
import type { ModelRouter } from "./model-router.ts";
import type { RoutedInstance } from "./routed-instance.ts";
import { chooseLeastBusy, chooseRandom, preferred } from "./routing.ts";
import type { SessionReply } from "./session-table.ts";

export interface InstanceRoutingOptions<Member> {
  readonly endpointName: string;
  readonly plan: VariantPlan;
  /** Instances that get requests; the owner changes the list. */
  readonly members: readonly Member[];
  /** Draining instances whose models are still being loaded on other instances; the owner changes the set. */
  readonly moving: ReadonlySet<Member>;
  readonly router: ModelRouter;
  /** True if the caller can send a request elsewhere that no instance has received. `invoke` then rejects with RequestNotSent. */
  readonly passesOn: boolean;
  readonly metrics: VariantMetrics;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
  readonly limits: InvocationLimits;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Routes the requests of one variant to its instances. */
export class InstanceRouting<Member extends RoutedInstance> {
  readonly #options: InstanceRoutingOptions<Member>;

  constructor(options: InstanceRoutingOptions<Member>) {
    this.#options = options;
  }

  /**
   * Sends a request to an instance, and to another one if the first did not receive it. `chosen` is the only instance
   * that may get the request; null for any.
   */
  async invoke(request: InvocationRequest, peerCount: number, chosen: Member | null): Promise<SessionReply<Member>> {
    const { targetModel, targetContainer, signal } = request;
    if (targetModel !== null && chosen === null) {
      await this.#options.router.located(this.#options.members, { targetModel, targetContainer }, signal);
    }
    let candidates = chosen === null ? this.#candidatesFor(request) : [chosen];
    if (candidates.length === 0) {
      await this.#waitForOne(request);
      candidates = this.#candidatesFor(request);
    }
    if (candidates.length === 0) throw this.#unavailable(request);
    if (request.bounds === undefined) {
      this.#options.metrics.record("InvocationsPerInstance", 1 / Math.max(peerCount, candidates.length));
    }
    const first = this.#choose(candidates, request);
    const { passesOn } = this.#options;
    if (candidates.length === 1) {
      return { reply: await first.invocations.invoke(request, { mayGoElsewhere: passesOn }), holder: first };
    }
    const body = request.body.bind(request);
    let acquired: ReturnType<typeof body> | null = null;
    const again = { ...request, body: () => (acquired ??= body()) };
    try {
      return { reply: await first.invocations.invoke(again, { mayGoElsewhere: true }), holder: first };
    } catch (error) {
      if (!(error instanceof RequestNotSent)) throw error;
    }
    // Only one retry: a request that crashes every container that receives it must not reach all instances.
    const others = this.#candidatesFor(request).filter((member) => member !== first);
    const second = others.length === 0 ? first : this.#choose(others, request);
    return { reply: await second.invocations.invoke(again, { mayGoElsewhere: passesOn }), holder: second };
  }

  #unavailable(request: InvocationRequest): Error {
    const [member] = this.#options.members;
    if (member !== undefined) return member.invocations.unavailable(request);
    const text = `Variant ${this.#options.plan.variant.VariantName} of endpoint ${this.#options.endpointName} has no instance in service. Retry later.`;
    return new AwsError("ServiceUnavailable", text, { statusFallback: 503, cause: new ContainerConnectionLost(text) });
  }

  /** Returns the instances that can serve a request. Unhealthy ones, and ones without capacity, are included only if there are no others. */
  #candidatesFor(request: InvocationRequest): readonly Member[] {
    const { targetModel, targetContainer } = request;
    if (targetModel !== null && this.#options.moving.size > 0) {
      const has = (member: Member) =>
        member.serves(targetContainer) && member.holderOf(targetContainer)?.models.copyOf(targetModel) === "loaded";
      const moving = this.#options.members.some(has) ? [] : [...this.#options.moving].filter(has);
      if (moving.length > 0) return moving;
    }
    const serving = this.#options.members.filter((member) => member.serves(targetContainer));
    const healthy = preferred(serving, (member) => member.isHealthy);
    return preferred(healthy, ({ invocations }) => invocations.refusalOf(request) === null);
  }

  #choose(candidates: readonly Member[], { targetModel, targetContainer }: InvocationRequest): Member {
    const [only, ...others] = candidates;
    assert(only !== undefined, "there is an instance to choose");
    if (others.length === 0) return only;
    if (targetModel !== null) return this.#options.router.choose([only, ...others], { targetModel, targetContainer });
    const chance = this.#options.random();
    const isRandom = this.#options.plan.variant.RoutingConfig?.RoutingStrategy === "RANDOM";
    return (isRandom ? chooseRandom : chooseLeastBusy)(candidates, chance) ?? only;
  }

  /** Waits for an instance if all containers are being restarted, instead of failing the request. The wait is limited. */
  async #waitForOne({ signal, targetContainer }: InvocationRequest): Promise<void> {
    const { limits, clock, logger } = this.#options;
    using limit = openDeadline({ clock, afterMs: limits.restartWaitMsMax, signal });
    await Promise.any(this.#options.members.map((member) => member.ready(targetContainer, limit.signal))).catch(
      (error: unknown) => {
        if (signal.aborted) throw signal.reason;
        logger.warning("no instance restarted in time", { error: String(error) });
      },
    );
  }
}
