import { ChangeNotifier, delay, openDeadline, rejectOnAbort, TaskGroup, type Clock, type Logger } from "@galatea/base";
import { createCertificate, type Certificate } from "@galatea/base/certificates";
import type {
  AgentContainer,
  AgentInstance,
  AgentInstanceSpec,
  InstanceEvent,
  InstanceView,
  OnStartFailure,
} from "../instance-agent/index.ts";
import {
  AgentProtocolError,
  HttpInstanceAgent,
  PlatformSuperseded,
  type AgentDestination,
  type HttpInstance,
} from "../instance-agent-http/index.ts";
import type { InstanceUsage } from "../instances/index.ts";
import { unknownTypeText } from "./cluster-node.ts";
import { ClusterApiError, type ClusterApi } from "./cluster-api.ts";
import type { PodCache } from "./pod-cache.ts";
import type { DisruptionBudgets } from "./disruption-budgets.ts";
import {
  agentPort,
  fleetHash,
  podHash,
  podManifest,
  podName,
  secretManifest,
  type PodSettings,
} from "./pod-manifest.ts";
import { podProblem, refusedPodProblem, warnedPodProblem } from "./pod-problem.ts";
import type { PodRollout } from "./pod-rollout.ts";
import { hasAgentStarted, hasPodEnded, haveProcessesEnded, instanceAnnotations, isPodReady, type Pod } from "./pod.ts";

/** The keys with which an agent downloads the models of its instance. */
export interface AgentKeys extends AsyncDisposable {
  readonly environment: Readonly<Record<string, string>>;
  /** Resolves when the keys are stored. The platform then accepts them even after a restart. */
  record(): Promise<void>;
}

export interface PodInstanceOptions {
  readonly api: ClusterApi;
  readonly pods: PodCache;
  readonly budgets: DisruptionBudgets;
  readonly rollout: PodRollout;
  readonly settings: PodSettings;
  /** The platform's client certificate. Agents accept connections only with this certificate. */
  readonly platform: Certificate;
  /** The epoch of the platform; null if no other platform can acquire its records. */
  readonly epoch: number | null;
  readonly keys: AgentKeys;
  /** Milliseconds in which the agent in the pod of a new instance must start, including node provisioning, the image pull and the start of the agent. */
  readonly podStartMsMax: number;
  readonly randomSuffix: () => string;
  readonly clock: Clock;
  readonly logger: Logger;
}

const retryMs = 1000;
/** Pause before the next attempt to replace a pod that still serves, in milliseconds. */
const replacementRetryMs = 5000;
const certificateYears = 10;
const yearMs = 365 * 24 * 3_600_000;

/** An error during the start of a pod. The message is the last part of a FailureReason. */
class PodStartError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "PodStartError";
  }
}

/**
 * An instance in its own pod. This class keeps one pod running and is a client of the agent in that pod. If the pod ends or its node disappears, it
 * creates a new pod and starts the instance there. A pod that still serves, because it is only outdated or is being evicted, keeps the requests
 * until the instance is in service in the new pod.
 */
export class PodInstance implements AgentInstance {
  readonly spec: AgentInstanceSpec;
  readonly #options: PodInstanceOptions;
  readonly #agent: HttpInstanceAgent;
  readonly #client: HttpInstance;
  readonly #onEvent: (event: InstanceEvent) => void;
  readonly #tasks: TaskGroup;
  readonly #lost = new ChangeNotifier();
  /** Certificates of agents, by pod name. */
  readonly #certificates = new Map<string, string>();
  /** True during the first start of the instance. If this start fails, the instance has failed and is not started in another pod. */
  #isFirstStart = false;
  #isEnding = false;
  /** Name of the pod that gets the requests; null if requests wait for a pod. */
  #connectedPod: string | null = null;
  readonly #hash: string;

  constructor(options: PodInstanceOptions, spec: AgentInstanceSpec, onEvent: (event: InstanceEvent) => void) {
    this.#options = options;
    this.spec = spec;
    this.#onEvent = onEvent;
    const { epoch, keys, settings, clock, logger } = options;
    this.#hash = podHash(spec, keys, settings);
    this.#agent = new HttpInstanceAgent({ address: null, token: null, trust: null, epoch, clock, logger });
    this.#client = this.#agent.instance(spec, (event) => this.#noted(event));
    this.#tasks = new TaskGroup((error) => {
      logger.error("bug: the supervision of an instance's pod has stopped", {
        instance: spec.id,
        error: String(error),
      });
    });
  }

  get id(): string {
    return this.spec.id;
  }

  get view(): InstanceView {
    return this.#client.view;
  }

  get containers(): readonly AgentContainer[] {
    return this.#client.containers;
  }

  async put(onStartFailure: OnStartFailure): Promise<boolean> {
    const { budgets, settings } = this.#options;
    const { types } = settings;
    const { instanceType, owner } = this.spec;
    const unknown = instanceType === undefined ? null : unknownTypeText(instanceType, types);
    if (unknown !== null && onStartFailure === "delete") throw new PodStartError(unknown);
    const wasThere = this.#livePod !== null;
    if (owner !== null) budgets.add(owner);
    this.#isFirstStart = onStartFailure === "delete";
    this.#tasks.run((closing) => this.#keepRunning(closing));
    return wasThere;
  }

  async attach(): Promise<boolean> {
    return this.#livePod !== null && (await this.#client.attach());
  }

  async usages(): Promise<readonly (readonly [name: string, usage: InstanceUsage | null])[]> {
    if (this.#connectedPod === null) return this.containers.map(({ name }) => [name, null] as const);
    return await this.#client.usages();
  }

  /** Deletes the pod. Retries while the API does not respond; otherwise, the pod would keep running without an owner. */
  async delete(): Promise<boolean> {
    await this.#close();
    const { budgets, clock, logger, keys } = this.#options;
    if (this.spec.owner !== null) budgets.remove(this.spec.owner);
    const names = this.#podNames;
    for (let isDeleted = false; !isDeleted;) {
      try {
        for (const name of names) await this.#deletePod(name);
        isDeleted = true;
      } catch (error) {
        // The pod belongs to the other platform now.
        if (error instanceof PlatformSuperseded) break;
        logger.warning("the pod of an instance could not be deleted; retrying", {
          instance: this.id,
          error: String(error),
        });
        await delay(clock, retryMs, null);
      }
    }
    await keys[Symbol.asyncDispose]();
    this.#client.apply({ kind: "ended", error: null }, Infinity);
    return names.size > 0;
  }

  async discard(): Promise<void> {
    await this.delete();
  }

  /**
   * Keeps the pod running, so that the next run of the platform adopts it. Deletes the pod of an instance without an owner, because no later run
   * adopts it.
   */
  async shutDown(): Promise<boolean> {
    if (this.spec.owner === null) return await this.delete();
    await this.#close();
    return true;
  }

  async #close(): Promise<void> {
    this.#isEnding = true;
    await this.#tasks[Symbol.asyncDispose]();
    await this.#agent[Symbol.asyncDispose]();
  }

  /** Keeps a pod with the instance running until disposal, or until the first start fails. */
  async #keepRunning(closing: AbortSignal): Promise<void> {
    const { keys, clock, logger } = this.#options;
    const startedMs = clock.epochMs();
    for (;;) {
      try {
        await keys.record();
        await this.#untilLost(await this.#serve(startedMs, closing), closing);
      } catch (error) {
        closing.throwIfAborted();
        if (error instanceof AgentProtocolError) await this.#dropPods();
        if (this.#isFirstStart && this.#isFatal(error, startedMs)) return this.#failed(error as Error);
        const isServing = this.#connectedPod !== null;
        const text = isServing ? "the pod of an instance is not replaced yet" : "an instance has no pod";
        logger.warning(`${text}; retrying`, { instance: this.id, error: String(error) });
        this.#reportFailure(error instanceof Error ? error.message : String(error));
        await delay(clock, isServing ? replacementRetryMs : retryMs, closing);
      }
      if (this.#client.view.hasEnded && this.#isFirstStart) return;
    }
  }

  /** Deletes the pod because its agent has another version. The next attempt creates a pod with an agent of this version. */
  async #dropPods(): Promise<void> {
    this.#lose("its agent is of another version");
    try {
      for (const name of this.#podNames) await this.#deletePod(name);
    } catch (error) {
      this.#options.logger.warning("the pod of an old agent could not be deleted", {
        instance: this.id,
        error: String(error),
      });
    }
  }

  #isFatal(error: unknown, startedMs: number): boolean {
    const { clock, podStartMsMax } = this.#options;
    return error instanceof PodStartError || clock.epochMs() - startedMs > podStartMsMax;
  }

  #failed(error: Error): void {
    this.#isEnding = true;
    this.#client.apply({ kind: "ended", error }, Infinity);
  }

  /** Resolves with the name of a current pod when its agent has the instance. Outdated pods of a fleet are replaced one by one. */
  async #serve(startedMs: number, closing: AbortSignal): Promise<string> {
    const outdated = this.#outdatedPod;
    if (outdated === null) return await this.#move(startedMs, closing);
    const { logger } = this.#options;
    const { name } = outdated.metadata;
    await this.#connect(outdated);
    if (!(await this.#client.attach())) {
      this.#lose(`the agent in the pod ${name} has restarted`);
      return await this.#move(startedMs, closing);
    }
    using slot = await this.#rolloutSlot(name, closing);
    logger.info("the pod of an instance is outdated; another one replaces it", { instance: this.id, pod: name });
    const moved = await this.#move(startedMs, closing);
    // The next instance of the fleet waits until this one serves, so that a pod that cannot serve stops the rollout.
    if (slot !== null) await this.#client.view.started(closing);
    return moved;
  }

  /** Waits until no other outdated pod of the fleet is being replaced. Resolves with null if the outdated pod is lost before. */
  async #rolloutSlot(outdated: string, closing: AbortSignal): Promise<Disposable | null> {
    const { rollout } = this.#options;
    const settled = new AbortController();
    const signal = AbortSignal.any([closing, settled.signal]);
    const fleet = this.spec.owner === null ? this.id : fleetHash(this.spec.owner);
    const slot = rollout.acquire(fleet, signal);
    const lost = this.#untilLost(outdated, signal).then(() => null);
    try {
      const first = await Promise.race([slot, lost]);
      if (first === null) slot.then((unused) => unused[Symbol.dispose]()).catch(() => {});
      return first;
    } finally {
      settled.abort();
      lost.catch(() => {});
    }
  }

  /** Starts the instance in a current pod and directs requests to it. Resolves with the name of the pod. */
  async #move(startedMs: number, closing: AbortSignal): Promise<string> {
    const { logger } = this.#options;
    const moved = new AbortController();
    this.#watchServing(AbortSignal.any([closing, moved.signal]));
    try {
      const pod = await this.#startedPod(startedMs, closing);
      const { name } = pod.metadata;
      const isServing = this.#connectedPod !== null && this.#connectedPod !== name;
      if (isServing && !this.#isFirstStart) await this.#prepare(pod, closing);
      await this.#connect(pod);
      const wasThere = await this.#client.put(this.#isFirstStart ? "delete" : "retry");
      if (!wasThere) logger.info("an instance starts in a pod", { instance: this.id, pod: name });
      for (const former of this.#podNames) if (former !== name) await this.#deletePod(former);
      return name;
    } finally {
      moved.abort();
    }
  }

  /** Makes requests wait for the next pod if the processes of the pod that serves now end. */
  #watchServing(signal: AbortSignal): void {
    const serving = this.#connectedPod;
    if (serving === null) return;
    this.#options.pods
      .until(serving, (found) => found === null || haveProcessesEnded(found), signal)
      .then(() => this.#connectedPod === serving && this.#lose(`the pod ${serving} has ended`))
      .catch(() => {});
  }

  /** Resolves when the instance is in service in a pod, while another pod serves its requests. */
  async #prepare(pod: Pod, closing: AbortSignal): Promise<void> {
    const { pods, epoch, clock, logger } = this.#options;
    const settled = new AbortController();
    const signal = AbortSignal.any([closing, settled.signal]);
    await using agent = new HttpInstanceAgent({ ...(await this.#destination(pod)), token: null, epoch, clock, logger });
    const instance = agent.instance(this.spec, (event) => {
      if (event.kind === "line") this.#onEvent(event);
    });
    await instance.put("retry");
    const { name } = pod.metadata;
    const started = instance.view.started(signal);
    const ended = pods
      .until(name, (found) => found === null || hasPodEnded(found), signal)
      .then(() => {
        throw new Error(`the pod ${name} ended while the instance started in it`);
      });
    try {
      await Promise.race([started, ended]);
    } finally {
      settled.abort();
      started.catch(() => {});
      ended.catch(() => {});
    }
  }

  /** Resolves when the agent in a current pod has started. Creates a pod if there is none. Rejects when the pod has a problem. */
  async #startedPod(startedMs: number, closing: AbortSignal): Promise<Pod> {
    const { pods, podStartMsMax, clock, logger } = this.#options;
    const live = this.#livePod;
    const name = live !== null && this.#isCurrent(live) ? live.metadata.name : await this.#createPod();
    let fromMs = this.#isFirstStart ? startedMs : clock.epochMs();
    for (;;) {
      const changed = pods.changed();
      const pod = pods.find(name);
      if (pod === null) throw new Error(`the pod ${name} was deleted while it started`);
      if (hasAgentStarted(pod)) return pod;
      const problem = podProblem(pod);
      if (hasPodEnded(pod)) throw new Error(problem?.text ?? `the pod ${name} ended while it started`);
      if (problem?.isFinal === true && this.#isFirstStart) throw new PodStartError(problem.text);
      if (problem !== null) this.#reportFailure(problem.text);
      const leftMs = fromMs + podStartMsMax - clock.epochMs();
      if (leftMs > 0) {
        using limit = openDeadline({ clock, afterMs: leftMs, signal: closing });
        await rejectOnAbort(changed, limit.signal).catch(() => closing.throwIfAborted());
        continue;
      }
      const text = problem?.text ?? (await this.#warned(name));
      if (this.#isFirstStart) throw new PodStartError(text);
      logger.warning("the pod of an instance does not start; still waiting", {
        instance: this.id,
        pod: name,
        reason: text,
      });
      this.#reportFailure(text);
      fromMs = clock.epochMs();
    }
  }

  /** Returns the reason why a pod was not ready in time, from its newest warning. */
  async #warned(name: string): Promise<string> {
    const { api, podStartMsMax } = this.#options;
    const problem = warnedPodProblem(await api.warnings(name));
    const late = `The pod ${name} was not ready after ${podStartMsMax / 1000} s.`;
    return problem === null ? late : `${late} ${problem.text}`;
  }

  /** The pod of the instance that has not ended, a current one rather than an outdated one; null if there is none. */
  get #livePod(): Pod | null {
    const live = this.#options.pods.ofInstance(this.id).filter((pod) => !hasPodEnded(pod));
    return live.find((pod) => this.#isCurrent(pod)) ?? live[0] ?? null;
  }

  /** The outdated pod that serves the instance until a current one does; null if there is none. */
  get #outdatedPod(): Pod | null {
    const pods = this.#options.pods.ofInstance(this.id);
    if (pods.some((pod) => this.#isCurrent(pod) && isPodReady(pod))) return null;
    return pods.find((pod) => !this.#isCurrent(pod) && hasAgentStarted(pod)) ?? null;
  }

  #isCurrent({ metadata }: Pod): boolean {
    return metadata.annotations?.[instanceAnnotations.spec] === this.#hash;
  }

  /** The names of all pods of the instance, including vanished pods whose Secrets still exist. */
  get #podNames(): ReadonlySet<string> {
    const listed = this.#options.pods.ofInstance(this.id).map(({ metadata }) => metadata.name);
    return new Set([...listed, ...this.#certificates.keys()]);
  }

  /** Creates a pod. First deletes all other pods of the instance, except the one that serves. */
  async #createPod(): Promise<string> {
    const { api, pods, settings, platform, keys, randomSuffix, clock } = this.#options;
    for (const former of this.#podNames) if (former !== this.#connectedPod) await this.#deletePod(former);
    const name = podName(this.spec, randomSuffix());
    const nowMs = clock.epochMs();
    const certificate = createCertificate({
      // The name of a pod is a host name of at most 63 characters.
      names: [name],
      notBefore: new Date(nowMs - yearMs),
      notAfter: new Date(nowMs + certificateYears * yearMs),
    });
    const { environment } = keys;
    const secrets = { certificate, platformPem: platform.certificatePem, environment };
    const pod = podManifest(name, this.spec, secrets, settings);
    try {
      await api.apply(secretManifest(name, this.spec, secrets, settings));
      await api.apply(pod);
    } catch (error) {
      if (!(error instanceof ClusterApiError)) throw error;
      const problem = refusedPodProblem(error.status, error.message);
      throw problem.isFinal ? new PodStartError(problem.text) : new Error(problem.text, { cause: error });
    }
    this.#certificates.set(name, certificate.certificatePem);
    pods.add(pod as Pod);
    return name;
  }

  async #deletePod(name: string): Promise<void> {
    const { api } = this.#options;
    await api.delete("Pod", name);
    await api.delete("Secret", name);
    this.#certificates.delete(name);
  }

  /** Directs new requests to the agent of this pod. Requests in flight continue on the former pod. */
  async #connect(pod: Pod): Promise<void> {
    const { name } = pod.metadata;
    if (this.#connectedPod === name) return;
    this.#agent.moveTo(await this.#destination(pod));
    this.#connectedPod = name;
  }

  async #destination({ metadata: { name }, status }: Pod): Promise<AgentDestination> {
    const caPem = this.#certificates.get(name) ?? (await this.#readCertificate(name));
    return {
      address: { kind: "tcp", host: status?.podIP ?? "", port: agentPort },
      trust: { caPem, serverName: name, certificate: this.#options.platform },
    };
  }

  /** Reads the certificate of an agent that a previous run of the platform created. */
  async #readCertificate(name: string): Promise<string> {
    const secret = (await this.#options.api.read("Secret", name)) as { readonly data?: Record<string, string> } | null;
    const { "tls.crt": encoded } = secret?.data ?? {};
    if (encoded !== undefined) {
      const certificatePem = Buffer.from(encoded, "base64").toString();
      this.#certificates.set(name, certificatePem);
      return certificatePem;
    }
    await this.#deletePod(name);
    throw new Error(`the Secret of the pod ${name} is missing: the pod is replaced`);
  }

  /** Resolves when the agent has lost the instance, or the pod has ended or is being deleted. */
  async #untilLost(name: string, closing: AbortSignal): Promise<void> {
    const { pods } = this.#options;
    for (;;) {
      const changed = Promise.race([pods.changed(), this.#lost.nextChange()]);
      if (this.#isFirstStart && this.#client.view.isInService) this.#isFirstStart = false;
      const pod = pods.find(name);
      if (pod === null) return this.#lose(`the pod ${name} was deleted`);
      if (hasPodEnded(pod)) {
        const problem = podProblem(pod);
        return problem === null ? undefined : this.#lose(problem.text);
      }
      if (this.#client.view.hasEnded) return;
      await rejectOnAbort(changed, closing);
    }
  }

  #noted(event: InstanceEvent): void {
    if (event.kind !== "ended") {
      this.#onEvent(event);
      if (event.kind === "health") this.#lost.notify();
      return;
    }
    if (this.#isEnding || this.#isFirstStart) this.#onEvent(event);
    else this.#lose("the agent in its pod has restarted");
    this.#lost.notify();
  }

  /** Records that no pod runs the instance. New requests wait for the next pod instead of failing. */
  #lose(failure: string): void {
    this.#connectedPod = null;
    this.#reportFailure(failure);
  }

  /**
   * Reports why there is no pod. Reports nothing while a pod is connected: a pod that is being deleted still serves if its successor fails to
   * start.
   */
  #reportFailure(failure: string): void {
    if (this.#isFirstStart || this.#connectedPod !== null) return;
    for (const { view } of this.#client.containers) view.setHealth({ ...view.health, at: "waiting", failure });
  }
}
