import { assert } from "@galatea/base";
import type { ModelAgent } from "../agent/index.ts";
import type { InstanceBudget } from "../definitions/index.ts";
import type { ContainerSpec, HostedInstance, InstanceUsage, Unconfined } from "../instances/index.ts";
import { InstanceInvocations, type InvokedContainer } from "../invocations/index.ts";
import { MemberContainer, openingOf } from "./member-container.ts";
import type { MemberOptions } from "./member-options.ts";

/** One instance of a variant: its containers, and its invocations. */
export class FleetMember implements AsyncDisposable {
  readonly #options: MemberOptions;
  readonly #hosted: HostedInstance;
  readonly #containers: readonly MemberContainer[];
  /** What goes to this instance, for whoever chose it. */
  readonly invocations: InstanceInvocations;

  constructor(given: Omit<MemberOptions, "loadedCountChanged">) {
    const loadedCountChanged = () => given.metrics.recordInstance("LoadedModelCount", this.loadedCount);
    const options = { ...given, loadedCountChanged };
    this.#options = options;
    const { fleet, plan, id, placed, budget } = options;
    const openings = options.containers.map((planned) => openingOf(planned, options));
    this.#hosted = fleet.host.open({
      instanceId: id,
      node: placed.node.id,
      budget,
      containers: atLeastOne(openings.map(({ spec }) => spec)),
    });
    this.#containers = openings.map((opening, index) => {
      const place = this.#hosted.places[index];
      assert(place !== undefined, "an instance has a place for each of its containers");
      return new MemberContainer(opening, place, options);
    });
    this.invocations = new InstanceInvocations({
      containers: this.#containers.map((each): InvokedContainer => each.invoked),
      executionMode: plan.model.executionMode,
      variantName: plan.variant.VariantName,
      metrics: options.metrics,
      limits: fleet.invocationLimits,
      clock: fleet.clock,
    });
  }

  /** For who asks them in another way than invocations. */
  get invoked(): readonly InvokedContainer[] {
    return this.#containers.map((each) => each.invoked);
  }

  get seat(): number {
    return this.#options.seat;
  }

  /** Of the models of a container, or of the only one that has many where none is named; null where it has one alone. */
  agentOf(containerName: string | null): ModelAgent | null {
    if (containerName === null) return this.#containers.find(({ agent }) => agent !== null)?.agent ?? null;
    return this.#containers.find(({ name }) => name === containerName)?.agent ?? null;
  }

  get id(): string {
    return this.#options.id;
  }

  get budget(): InstanceBudget {
    return this.#options.budget;
  }

  /** Accounts it to its node as one that ends. */
  leaves(): void {
    this.#options.placed.leaves();
  }

  /** Accounts to its node how much its containers take in addition to what they are reserved. */
  measured(beyondBytes: number): void {
    this.#options.placed.measured(beyondBytes);
  }

  get inFlightCount(): number {
    return this.invocations.inFlightCount;
  }

  /** With all its containers. */
  get isInService(): boolean {
    return this.#containers.every((each) => each.isInService);
  }

  /** Whether it can take a request for a container, or for all of them where none is named. */
  serves(containerName: string | null): boolean {
    return this.#named(containerName).every((each) => each.isInService);
  }

  /** Whether nothing says that one of its containers is about to end. */
  get isTrusted(): boolean {
    return this.#containers.every(({ container }) => container.client?.isSuspect === false);
  }

  get unconfined(): Unconfined {
    return Object.assign({}, ...this.#containers.map(({ container }) => container.client?.unconfined)) as Unconfined;
  }

  get loadedCount(): number {
    return this.#containers.reduce((sum, { agent }) => sum + (agent?.loadedCount ?? 0), 0);
  }

  /** Brings the models' data and the containers into service, all at once. On failure nothing of it is left. */
  async start(signal: AbortSignal): Promise<void> {
    // The first that fails is what is told; the others are not waited for.
    const failed = new AbortController();
    const either = AbortSignal.any([signal, failed.signal]);
    const starts = this.#containers.map(({ container }) => container.start(either));
    for (const start of starts) start.catch((error: unknown) => failed.abort(error));
    await Promise.allSettled(starts);
    if (!failed.signal.aborted) return;
    await this[Symbol.asyncDispose]();
    throw failed.signal.reason;
  }

  /** For what was in service before the platform ended: tried until it is again. */
  resume(): void {
    for (const { container } of this.#containers) container.resume();
  }

  /** Resolves once the containers that a request is for are in service; rejects while their starts keep failing. */
  async ready(containerName: string | null, signal: AbortSignal): Promise<void> {
    await Promise.all(this.#named(containerName).map(({ container }) => container.ready(signal)));
  }

  /** Of each container that runs, by its name; null for one that does not. */
  async usages(): Promise<readonly (readonly [name: string, usage: InstanceUsage | null])[]> {
    return await Promise.all(
      this.#containers.map(async ({ name, container }) => [name, await container.usage()] as const),
    );
  }

  /** For the platform's end: everything stops, and unpacked models stay for its next life. */
  async leave(): Promise<void> {
    await this.#stop();
    await this.#hosted.leave();
    this.#options.placed[Symbol.dispose]();
  }

  async #stop(): Promise<void> {
    await Promise.all(this.#containers.map((each) => each[Symbol.asyncDispose]()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
    await this.#hosted[Symbol.asyncDispose]();
    this.#options.placed[Symbol.dispose]();
  }

  #named(containerName: string | null): readonly MemberContainer[] {
    return containerName === null ? this.#containers : this.#containers.filter(({ name }) => name === containerName);
  }
}

function atLeastOne(specs: readonly ContainerSpec[]): readonly [ContainerSpec, ...ContainerSpec[]] {
  const [first, ...more] = specs;
  assert(first !== undefined, "a model has one container at least");
  return [first, ...more];
}
