import { silentLogger, systemClock, TaskGroup } from "@galatea/base";
import { AgentServer, agentServerLimits } from "../src/instance-agent-http/index.ts";
import {
  agentPort,
  ClusterApiError,
  type ClusterApi,
  type ListedPods,
  type ObjectKind,
  type PodWatchOptions,
} from "../src/kubernetes-host/index.ts";
import type { Pod, PodWarning } from "../src/kubernetes-host/pod.ts";
import type { LocalInstanceAgent } from "../src/instance-agent/index.ts";
import { openLocalAgent } from "./instance-agents-fixture.ts";

interface Manifest {
  readonly kind: ObjectKind;
  readonly metadata: Pod["metadata"];
  readonly data?: Readonly<Record<string, string>>;
}

let addressCount = 0;

/**
 * A Kubernetes cluster in memory. The agents in its pods are real: each listens on its own address in 127.1.0.0/16 and
 * runs processes.
 */
export class FakeCluster implements ClusterApi, AsyncDisposable {
  readonly namespace = "test";
  readonly #objects = new Map<string, Manifest & Pod>();
  readonly #watches = new Set<PodWatchOptions>();
  readonly #pods = new Map<string, { readonly server: AgentServer; readonly running: AsyncDisposableStack }>();
  readonly #ends = new TaskGroup((error) => {
    throw error;
  });
  readonly agents = new Map<string, LocalInstanceAgent>();
  /** Status of new pods, to simulate pods that do not start; null for pods that start. */
  status: NonNullable<Pod["status"]> | null = null;
  /** Error with which every call rejects; null while the API responds. */
  failure: Error | null = null;
  callCount = 0;
  /** Maximum number of pods at the same time, without those that are being deleted. */
  livePodsMax = 0;
  /** Events of type Warning of every pod. */
  podWarnings: readonly PodWarning[] = [];

  async apply(manifest: object): Promise<void> {
    this.#called();
    const object = manifest as Manifest & Pod;
    this.#objects.set(keyOf(object.kind, object.metadata.name), object);
    if (object.kind !== "Pod") return;
    const live = this.pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    this.livePodsMax = Math.max(this.livePodsMax, live.length);
    if (this.status !== null) this.#change(object, this.status);
    else await this.#start(object);
  }

  async #start(pod: Manifest & Pod): Promise<void> {
    const { name } = pod.metadata;
    const { data = {} } = this.#objects.get(keyOf("Secret", name)) ?? {};
    const decoded = (key: string) => Buffer.from(data[key] ?? "", "base64").toString();
    const running = new AsyncDisposableStack();
    const { agent } = running.use(await openLocalAgent());
    const host = `127.1.0.${(addressCount += 1)}`;
    const server = running.use(
      await AgentServer.open({
        agent,
        listen: { kind: "tcp", host, port: agentPort },
        token: null,
        certificate: { certificatePem: decoded("tls.crt"), keyPem: decoded("tls.key") },
        clientCaPem: decoded("ca.crt"),
        limits: agentServerLimits,
        clock: systemClock,
        logger: silentLogger,
      }),
    );
    this.agents.set(name, agent);
    this.#pods.set(name, { server, running });
    this.#change(pod, {
      phase: "Running",
      podIP: host,
      conditions: [{ type: "Ready", status: "True" }],
      containerStatuses: [{ name: "agent", started: true }],
    });
  }

  read(kind: ObjectKind, name: string): Promise<unknown> {
    this.#called();
    return Promise.resolve(this.#objects.get(keyOf(kind, name)) ?? null);
  }

  names(kind: ObjectKind, selector: string): Promise<readonly string[]> {
    this.#called();
    const labels = selector.split(",").map((each) => each.split("="));
    const found = this.#named(kind).filter(({ metadata }) =>
      labels.every(([name = "", value]) => metadata.labels?.[name] === value),
    );
    return Promise.resolve(found.map(({ metadata }) => metadata.name));
  }

  /** Deletes an object. For a pod, resolves immediately; the pod terminates when its agent has no request in flight. */
  async delete(kind: ObjectKind, name: string): Promise<void> {
    this.#called();
    const object = this.#objects.get(keyOf(kind, name));
    const pod = this.#pods.get(name);
    if (kind !== "Pod" || object === undefined || pod === undefined) return await this.remove(kind, name);
    if (object.metadata.deletionTimestamp !== undefined) return;
    const metadata = { ...object.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
    this.#change({ ...object, metadata }, object.status ?? {});
    this.#ends.run(async (closing) => {
      await pod.server.idle(closing);
      await this.remove(kind, name);
    });
  }

  /** Removes an object as Kubernetes itself does, for example after a node has failed. */
  async remove(kind: ObjectKind, name: string): Promise<void> {
    const object = this.#objects.get(keyOf(kind, name));
    this.#objects.delete(keyOf(kind, name));
    if (kind !== "Pod" || object === undefined) return;
    for (const { onChange } of this.#watches) onChange({ kind: "DELETED", pod: object });
    await this.#pods.get(name)?.running.disposeAsync();
    this.#pods.delete(name);
  }

  warnings(): Promise<readonly PodWarning[]> {
    this.#called();
    return Promise.resolve(this.podWarnings);
  }

  listPods(): Promise<ListedPods> {
    this.#called();
    return Promise.resolve({ pods: this.pods, version: "1" });
  }

  async watchPods(options: PodWatchOptions): Promise<void> {
    this.#called();
    this.#watches.add(options);
    try {
      await new Promise<never>((_, reject) =>
        options.signal.addEventListener("abort", () => reject(options.signal.reason as Error)),
      );
    } finally {
      this.#watches.delete(options);
    }
  }

  get pods(): readonly Pod[] {
    return this.#named("Pod");
  }

  /** The `minAvailable` of each disruption budget. */
  get minAvailable(): readonly number[] {
    return this.#named("PodDisruptionBudget").map((budget) => {
      return (budget.spec as unknown as { readonly minAvailable: number }).minAvailable;
    });
  }

  get secretNames(): readonly string[] {
    return this.#named("Secret").map(({ metadata }) => metadata.name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#ends[Symbol.asyncDispose]();
    await Promise.all([...this.#pods.values()].map(({ running }) => running.disposeAsync()));
  }

  #named(kind: ObjectKind) {
    return [...this.#objects.values()].filter((object) => object.kind === kind);
  }

  #change(pod: Manifest & Pod, status: NonNullable<Pod["status"]>): void {
    const changed = { ...pod, status };
    this.#objects.set(keyOf("Pod", pod.metadata.name), changed);
    for (const { onChange } of this.#watches) onChange({ kind: "MODIFIED", pod: changed });
  }

  #called(): void {
    this.callCount += 1;
    if (this.failure !== null) throw this.failure;
  }
}

const keyOf = (kind: ObjectKind, name: string) => `${kind} ${name}`;

/** The API's error if a quota of the namespace is exceeded. */
export const quotaExceeded = new ClusterApiError(
  403,
  'pods "x" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1',
);
