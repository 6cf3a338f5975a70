import { ownerKey, type AdoptableInstance, type InstanceAdoption, type InstanceOwner } from "../instances/index.ts";
import type { NodeId } from "../nodes/index.ts";
import type { RemoteAgent } from "./remote-agent.ts";

/** Adopts instances that a previous run of the platform left running on other machines. */
export class AgentAdoption implements InstanceAdoption {
  /** Agents run only the built-in containers. */
  readonly runsImages = false;
  readonly #agents: ReadonlyMap<NodeId, RemoteAgent>;
  readonly #ownMachine: InstanceAdoption;
  readonly #kept = new Map<string, AdoptableInstance>();

  /** `ownMachine` stops the instances that a previous run without agents left on the platform's own machine. */
  constructor(agents: ReadonlyMap<NodeId, RemoteAgent>, ownMachine: InstanceAdoption) {
    this.#agents = agents;
    this.#ownMachine = ownMachine;
  }

  async resume(desired: readonly InstanceOwner[]): Promise<ReadonlySet<string>> {
    await this.#ownMachine.resume([]);
    const keys = new Set(desired.map(ownerKey));
    const isDesired = (owner: InstanceOwner | null) => owner !== null && keys.delete(ownerKey(owner));
    const adopt = async ([node, agent]: readonly [NodeId, RemoteAgent]) => {
      for (const { spec } of await agent.endLeft((instance) => isDesired(instance.spec.owner)))
        if (spec.owner !== null) this.#kept.set(ownerKey(spec.owner), { id: spec.id, node });
    };
    await Promise.all([...this.#agents].map(adopt));
    return new Set(this.#kept.values().map(({ id }) => id));
  }

  claim(owner: InstanceOwner): AdoptableInstance | null {
    const key = ownerKey(owner);
    const kept = this.#kept.get(key) ?? null;
    this.#kept.delete(key);
    return kept;
  }
}
