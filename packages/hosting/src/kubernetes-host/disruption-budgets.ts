import { ChangeNotifier, delay, rejectOnAbort, TaskGroup, type Clock, type Logger } from "@galatea/base";
import { PlatformSuperseded } from "../instance-agent-http/index.ts";
import type { InstanceOwner } from "../instances/index.ts";
import type { ClusterApi } from "./cluster-api.ts";
import { disruptionBudgetManifest, fleetHash, type PodSettings } from "./pod-manifest.ts";

const retryMs = 1000;

export interface DisruptionBudgetOptions {
  readonly api: ClusterApi;
  readonly settings: PodSettings;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface FleetInstances {
  readonly owner: InstanceOwner;
  readonly ordinals: Set<number>;
}

/**
 * The PodDisruptionBudgets of a platform: one for each fleet. A budget lets Kubernetes evict one pod of the fleet at a time, for example when a
 * node is drained. The next eviction is allowed when all instances of the fleet are in service again.
 */
export class DisruptionBudgets implements AsyncDisposable {
  readonly #options: DisruptionBudgetOptions;
  readonly #fleets = new Map<string, FleetInstances>();
  /** Names of budgets that differ from those in the cluster. */
  readonly #outdated = new Set<string>();
  readonly #changed = new ChangeNotifier();
  readonly #tasks: TaskGroup;

  constructor(options: DisruptionBudgetOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) =>
      options.logger.error("bug: the update of disruption budgets has stopped", { error: String(error) }),
    );
    this.#tasks.run((closing) => this.#follow(closing));
  }

  /** Sets all instances of the platform. `existing`: the names of budgets in the cluster. Call it once, at the start. */
  resume(owners: readonly InstanceOwner[], existing: readonly string[]): void {
    for (const owner of owners) this.add(owner);
    for (const name of existing) this.#markOutdated(name);
  }

  add(owner: InstanceOwner): void {
    const name = this.#nameOf(owner);
    const fleet = this.#fleets.get(name) ?? { owner, ordinals: new Set() };
    this.#fleets.set(name, fleet);
    if (fleet.ordinals.has(owner.ordinal)) return;
    fleet.ordinals.add(owner.ordinal);
    this.#markOutdated(name);
  }

  remove(owner: InstanceOwner): void {
    const name = this.#nameOf(owner);
    const ordinals = this.#fleets.get(name)?.ordinals;
    if (ordinals?.delete(owner.ordinal) !== true) return;
    if (ordinals.size === 0) this.#fleets.delete(name);
    this.#markOutdated(name);
  }

  #nameOf(owner: InstanceOwner): string {
    return `${this.#options.settings.platform}-${fleetHash(owner)}`;
  }

  #markOutdated(name: string): void {
    this.#outdated.add(name);
    this.#changed.notify();
  }

  async #follow(closing: AbortSignal): Promise<void> {
    const { api, settings, clock, logger } = this.#options;
    for (;;) {
      const changed = this.#changed.nextChange();
      const [name] = this.#outdated;
      if (name === undefined) {
        await rejectOnAbort(changed, closing);
        continue;
      }
      this.#outdated.delete(name);
      const fleet = this.#fleets.get(name);
      try {
        if (fleet === undefined) await api.delete("PodDisruptionBudget", name);
        else await api.apply(disruptionBudgetManifest(name, fleet.owner, fleet.ordinals.size, settings));
      } catch (error) {
        closing.throwIfAborted();
        // The budgets belong to the other platform now.
        if (error instanceof PlatformSuperseded) return;
        this.#outdated.add(name);
        logger.warning("a disruption budget could not be updated; retrying", { name, error: String(error) });
        await delay(clock, retryMs, closing);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
  }
}
