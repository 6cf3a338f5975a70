import { randomBytes } from "node:crypto";
import type { Clock, Logger } from "@galatea/base";
import { createCertificate, type Certificate } from "@galatea/base/certificates";
import type { AgentInstance, AgentInstanceSpec, InstanceEvent } from "../instance-agent/index.ts";
import type { AdoptableInstance, InstanceOwner } from "../instances/index.ts";
import type { NodeId } from "../nodes/index.ts";
import type { ClusterApi } from "./cluster-api.ts";
import { DisruptionBudgets } from "./disruption-budgets.ts";
import { PodCache } from "./pod-cache.ts";
import { PodInstance, type AgentKeys, type PodInstanceOptions } from "./pod-instance.ts";
import { PodRollout } from "./pod-rollout.ts";
import { platformLabels, type PodSettings } from "./pod-manifest.ts";
import { hasPodEnded, instanceAnnotations, instanceLabels, type Pod } from "./pod.ts";

export interface KubernetesHostOptions {
  readonly api: ClusterApi;
  readonly settings: PodSettings;
  /** The hosting node that represents the whole cluster. */
  readonly node: NodeId;
  readonly podStartMsMax: number;
  /** The epoch of the platform; null if no other platform can acquire its records. */
  readonly epoch: number | null;
  /** Issues the keys with which the agent of an instance downloads its models. */
  readonly issueKeys: (spec: AgentInstanceSpec) => AgentKeys;
  readonly clock: Clock;
  readonly logger: Logger;
}

const keyOf = ({ endpointName, fleetKey, ordinal }: InstanceOwner) => JSON.stringify([endpointName, fleetKey, ordinal]);
const yearMs = 365 * 24 * 3_600_000;

/** Runs instances as pods of the platform's namespace. The pods outlive the platform's process; its next run adopts them. */
export class KubernetesHost implements AsyncDisposable {
  /** False, because each pod runs Galatea's image instead of images of users. */
  readonly runsImages = false;
  readonly #options: KubernetesHostOptions;
  readonly #pods: PodCache;
  readonly #platform: Certificate;
  readonly #kept = new Map<string, AdoptableInstance>();
  readonly #budgets: DisruptionBudgets;
  readonly #rollout = new PodRollout();

  private constructor(options: KubernetesHostOptions, pods: PodCache, platform: Certificate) {
    this.#options = options;
    this.#pods = pods;
    this.#platform = platform;
    this.#budgets = new DisruptionBudgets(options);
  }

  /** Opens the host. Resolves after the first list of the platform's pods. */
  static async open(options: KubernetesHostOptions): Promise<KubernetesHost> {
    const { api, settings, clock, logger } = options;
    const selector = selectorOf(settings);
    const pods = await PodCache.open({ api, selector, clock, logger });
    try {
      return new KubernetesHost(options, pods, await platformCertificate(options));
    } catch (error) {
      await pods[Symbol.asyncDispose]();
      throw error;
    }
  }

  /**
   * Keeps the pods of the given owners and deletes all other pods of the platform. Resolves with the ids of the kept instances. Call it
   * once.
   */
  async resume(desired: readonly InstanceOwner[]): Promise<ReadonlySet<string>> {
    const { api, node, settings } = this.#options;
    const missingKeys = new Set(desired.map(keyOf));
    const keptPods = new Set<string>();
    for (const pod of this.#pods.all) {
      const owner = hasPodEnded(pod) ? null : ownerOf(pod);
      const key = owner === null ? "" : keyOf(owner);
      const { [instanceLabels.instance]: id } = pod.metadata.labels ?? {};
      // While a pod is replaced, its instance has two pods. Both are kept.
      if (id !== undefined && (missingKeys.delete(key) || this.#kept.get(key)?.id === id)) {
        this.#kept.set(key, { id, node });
        keptPods.add(pod.metadata.name);
      } else if (pod.metadata.deletionTimestamp === undefined) await api.delete("Pod", pod.metadata.name);
    }
    for (const name of await api.names("Secret", selectorOf(settings))) {
      if (!keptPods.has(name)) await api.delete("Secret", name);
    }
    this.#budgets.resume(desired, await api.names("PodDisruptionBudget", selectorOf(settings)));
    return new Set(this.#kept.values().map(({ id }) => id));
  }

  claim(owner: InstanceOwner): AdoptableInstance | null {
    const key = keyOf(owner);
    const kept = this.#kept.get(key) ?? null;
    this.#kept.delete(key);
    return kept;
  }

  /** Returns a client of an instance. The instance has no pod until `put` is called. */
  instance(spec: AgentInstanceSpec, onEvent: (event: InstanceEvent) => void): AgentInstance {
    const options: PodInstanceOptions = {
      ...this.#options,
      pods: this.#pods,
      budgets: this.#budgets,
      rollout: this.#rollout,
      platform: this.#platform,
      keys: this.#options.issueKeys(spec),
      randomSuffix: () => randomBytes(3).toString("hex"),
    };
    return new PodInstance(options, spec, onEvent);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#budgets[Symbol.asyncDispose]();
    await this.#pods[Symbol.asyncDispose]();
  }
}

const selectorOf = ({ platform }: PodSettings) =>
  Object.entries(platformLabels(platform))
    .map(([name, value]) => `${name}=${value}`)
    .join(",");

function ownerOf({ metadata: { annotations } }: Pod): InstanceOwner | null {
  const { [instanceAnnotations.owner]: text } = annotations ?? {};
  return text === undefined ? null : (JSON.parse(text) as InstanceOwner);
}

/** Returns the certificate with which the platform identifies itself to agents; the first run creates it. */
async function platformCertificate({ api, settings, clock }: KubernetesHostOptions): Promise<Certificate> {
  const { namespace, platform, owner } = settings;
  const name = `${platform}-agents`;
  const found = (await api.read("Secret", name)) as { readonly data?: Readonly<Record<string, string>> } | null;
  const { "tls.crt": certificatePem, "tls.key": keyPem } = found?.data ?? {};
  const decoded = (text: string) => Buffer.from(text, "base64").toString();
  if (certificatePem !== undefined && keyPem !== undefined)
    return { certificatePem: decoded(certificatePem), keyPem: decoded(keyPem) };
  const nowMs = clock.epochMs();
  const created = createCertificate({
    names: [platform],
    notBefore: new Date(nowMs - yearMs),
    notAfter: new Date(nowMs + 10 * yearMs),
  });
  await api.apply({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace, ...(owner === null ? {} : { ownerReferences: [owner] }) },
    type: "kubernetes.io/tls",
    data: {
      "tls.crt": Buffer.from(created.certificatePem).toString("base64"),
      "tls.key": Buffer.from(created.keyPem).toString("base64"),
    },
  });
  return created;
}
