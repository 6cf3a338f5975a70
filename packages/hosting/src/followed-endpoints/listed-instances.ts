import { delay, TaskGroup, type Clock, type Logger } from "@galatea/base";
import type { AgentInstanceSpec, InstanceAgent } from "../instance-agent/index.ts";

/** An instance that an agent runs for an endpoint. */
export interface InstanceOnAgent {
  readonly agent: InstanceAgent;
  readonly spec: AgentInstanceSpec;
  readonly fleetKey: string;
  readonly ordinal: number;
}

export interface ListedInstancesOptions {
  readonly agents: readonly InstanceAgent[];
  /** Called when an agent's instances may have changed. */
  readonly onChange: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

const retryMs = 500;

/** The instances of all agents, by endpoint. While an agent does not respond, its instances stay in the list. */
export class ListedInstances implements AsyncDisposable {
  readonly #options: ListedInstancesOptions;
  readonly #tasks: TaskGroup;
  readonly #byAgent = new Map<InstanceAgent, readonly AgentInstanceSpec[]>();

  constructor(options: ListedInstancesOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) => {
      options.logger.error("bug: following an agent's instances has stopped", { error: String(error) });
    });
    for (const agent of options.agents) this.#tasks.run((closing) => this.#follow(agent, closing));
  }

  /** Returns the names of the endpoints that have instances. */
  endpointNames(): ReadonlySet<string> {
    return new Set([...this.#byAgent.values()].flat().flatMap(({ owner }) => owner?.endpointName ?? []));
  }

  of(endpointName: string): readonly InstanceOnAgent[] {
    return [...this.#byAgent].flatMap(([agent, specs]) =>
      specs.flatMap((spec) => {
        const { owner } = spec;
        return owner?.endpointName === endpointName ? [{ agent, spec, ...owner }] : [];
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
  }

  async #follow(agent: InstanceAgent, closing: AbortSignal): Promise<void> {
    for (;;) {
      try {
        for await (const event of agent.events({ after: await this.#list(agent), signal: closing })) {
          if (event.kind === "lost" || event.kind === "ended" || !this.#lists(agent, event.instanceId))
            await this.#list(agent);
        }
      } catch {
        // The agent's client logs that the agent does not respond.
        closing.throwIfAborted();
      }
      await delay(this.#options.clock, retryMs, closing);
    }
  }

  #lists(agent: InstanceAgent, id: string): boolean {
    return this.#byAgent.get(agent)?.some((spec) => spec.id === id) === true;
  }

  /** Reads the instances of an agent. Resolves with the sequence number of the newest event that the list includes. */
  async #list(agent: InstanceAgent): Promise<number> {
    const { seq, instances } = await agent.state();
    this.#byAgent.set(
      agent,
      instances.map(({ spec }) => spec),
    );
    this.#options.onChange();
    return seq;
  }
}
