import { TaskGroup } from "@galatea/base";
import { nameKey } from "../definitions/index.ts";
import type { EndpointRecord } from "../endpoints/index.ts";
import type { InstanceAgent } from "../instance-agent/index.ts";
import { endpointNotFound, type InvocationReply, type InvocationRequest } from "../invocations/index.ts";
import type { Document, FollowedDocuments } from "../records/index.ts";
import { FollowedEndpoint, isFollowable } from "./followed-endpoint.ts";
import type { FollowedFleetOptions } from "./followed-fleet.ts";
import { ListedInstances } from "./listed-instances.ts";

export interface FollowedEndpointsOptions extends FollowedFleetOptions {
  /** Documents that include those of the kind `endpointKind`. */
  readonly documents: FollowedDocuments;
  readonly agents: readonly InstanceAgent[];
}

interface Followed {
  readonly endpoint: FollowedEndpoint;
  readonly version: number;
  readonly record: EndpointRecord;
}

/** All endpoints of another process that have instances on the agents, by their keys. */
export class FollowedEndpoints implements AsyncDisposable {
  /** The kind of the documents of endpoints. */
  static readonly endpointKind = "endpoint";
  readonly #options: FollowedEndpointsOptions;
  readonly #instances: ListedInstances;
  readonly #tasks: TaskGroup;
  readonly #followed = new Map<string, Followed>();

  constructor(options: FollowedEndpointsOptions) {
    const { documents, agents, clock, logger } = options;
    this.#options = options;
    this.#instances = new ListedInstances({ agents, onChange: () => this.#update(), clock, logger });
    this.#tasks = new TaskGroup((error) =>
      logger.error("bug: following endpoints has stopped", { error: String(error) }),
    );
    this.#tasks.run(async (closing) => {
      const closed = new Promise<void>((resolve) => closing.addEventListener("abort", () => resolve(), { once: true }));
      while (!closing.aborted) {
        const changed = documents.changed();
        this.#update();
        await Promise.race([changed, closed]);
      }
    });
  }

  /** Returns an endpoint with an instance in service that can be invoked here; null if there is none. */
  find(name: string): FollowedEndpoint | null {
    const endpoint = this.#followed.get(nameKey(name))?.endpoint ?? null;
    return endpoint?.canServe === true ? endpoint : null;
  }

  async invoke(name: string, accountId: string, request: InvocationRequest): Promise<InvocationReply> {
    const followed = this.#followed.get(nameKey(name));
    if (followed === undefined) throw endpointNotFound(name, accountId);
    return await followed.endpoint.invoke(request);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.#instances[Symbol.asyncDispose]();
    await Promise.all([...this.#followed.values()].map(({ endpoint }) => endpoint[Symbol.asyncDispose]()));
  }

  #update(): void {
    const names = new Map([...this.#instances.endpointNames()].map((name) => [nameKey(name), name]));
    for (const key of new Set([...names.keys(), ...this.#followed.keys()])) {
      const former = this.#followed.get(key);
      const document = this.#options.documents.get(FollowedEndpoints.endpointKind, key);
      const record = document === null ? null : recordOf(document, former);
      if (document === null || record === null || !isFollowable(record)) {
        this.#followed.delete(key);
        void former?.endpoint[Symbol.asyncDispose]();
        continue;
      }
      const endpoint = former?.endpoint ?? new FollowedEndpoint(record.name, this.#options);
      this.#followed.set(key, { endpoint, version: document.version, record });
      endpoint.follow(record, this.#instances.of(record.name));
    }
  }
}

/** Parses a record, unless it is the one that is already followed. */
function recordOf({ version, body }: Document, former: Followed | undefined): EndpointRecord | null {
  if (former?.version === version) return former.record;
  try {
    return JSON.parse(body) as EndpointRecord;
  } catch {
    // The platform logs damaged records, and treats them as absent.
    return null;
  }
}
