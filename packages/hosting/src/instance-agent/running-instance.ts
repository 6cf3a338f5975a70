import { assert } from "@galatea/base";
import type { HostedInstance, InstanceUsage, ModelHost } from "../instances/index.ts";
import type { InstanceEvent, ListedInstance } from "./agent-events.ts";
import type { AgentInstanceSpec, OnStartFailure } from "./agent-spec.ts";
import { RunningContainer, type RunningDependencies } from "./running-container.ts";

export interface RunningInstanceOptions extends RunningDependencies {
  readonly host: ModelHost;
  readonly spec: AgentInstanceSpec;
  readonly emit: (event: InstanceEvent) => void;
}

/** An instance that this process runs. */
export class RunningInstance {
  readonly spec: AgentInstanceSpec;
  readonly containers: readonly RunningContainer[];
  readonly #hosted: HostedInstance;
  readonly #starting = new AbortController();
  #starts: Promise<unknown> = Promise.resolve();

  constructor(options: RunningInstanceOptions) {
    const { host, node, spec, emit } = options;
    this.spec = spec;
    const [first, ...more] = spec.containers.map((container, position) => {
      return { ...container, output: (text: string) => emit({ kind: "line", position, text }) };
    });
    assert(first !== undefined, "an instance has one container at least");
    this.#hosted = host.open({
      instanceId: spec.id,
      owner: spec.owner,
      node: node.id,
      budget: spec.budget,
      containers: [first, ...more],
    });
    this.containers = spec.containers.map((container, position) => {
      const slot = this.#hosted.slots[position];
      assert(slot !== undefined, "an instance has a slot for each of its containers");
      return new RunningContainer({
        ...options,
        instance: spec,
        spec: container,
        slot,
        emit: (change) => emit({ ...change, position }),
      });
    });
  }

  get listed(): ListedInstance {
    return { spec: this.spec, containers: this.containers.map((container) => container.listed) };
  }

  /** Starts all containers. Resolves with null when they are in service, or with the first failure. With `retry` it resolves with null at once. */
  async start(onStartFailure: OnStartFailure): Promise<Error | null> {
    if (onStartFailure === "retry") {
      for (const { container } of this.containers) container.resume();
      return null;
    }
    const { signal } = this.#starting;
    const starts = this.containers.map(({ container }) => container.start(signal));
    // The first failure cancels the other starts.
    for (const start of starts) start.catch((error: unknown) => this.#starting.abort(error));
    this.#starts = Promise.allSettled(starts);
    await this.#starts;
    if (!signal.aborted) return null;
    return signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason));
  }

  async usages(): Promise<readonly (readonly [name: string, usage: InstanceUsage | null])[]> {
    return await Promise.all(
      this.containers.map(async (container) => [container.name, await container.usage()] as const),
    );
  }

  /** Stops all containers. `leave` keeps unpacked models for the next run of the platform; `delete` removes everything. */
  async end(how: "delete" | "leave"): Promise<void> {
    this.#starting.abort(new Error("the instance is stopped"));
    // Without this wait, a start in progress could write to directories that are being removed.
    await this.#starts;
    await Promise.all(this.containers.map((container) => container[Symbol.asyncDispose]()));
    await (how === "leave" ? this.#hosted.leave() : this.#hosted[Symbol.asyncDispose]());
  }
}
