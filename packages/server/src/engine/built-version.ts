import type { Clock, Logger } from "@galatea/base";
import {
  findBackend,
  type Backend,
  type DeviceBytes,
  type LoadContext,
  type LoadedModel,
  type ModelSource,
  type NamespaceMetrics,
  type BlsClient,
} from "../backends/index.ts";
import { rejectUnsupported, type ModelConfig } from "../modelconfig/index.ts";
import type { RequestRecord } from "../inference/index.ts";
import type { Arena } from "../tensor/index.ts";
import { readLabels } from "./labels.ts";
import { modelContent, estimateMemory } from "./model-content.ts";
import type { ChargeOwner, MemoryBudget } from "./memory-budget.ts";
import { openModel } from "./open-model.ts";
import { ModelCaller, type ModelCallerDependencies } from "./model-caller.ts";
import { warmUp } from "./warm-up.ts";
import type { ModelHealth } from "./serving-version.ts";

/** A version whose instances are running, before it receives requests. A caller that does not put it into service disposes its model. */
export interface BuiltVersion {
  readonly version: number;
  readonly config: ModelConfig;
  readonly labels: ReadonlyMap<string, readonly string[]>;
  readonly model: LoadedModel;
  readonly health: ModelHealth;
  readonly loadNs: number;
  /** The model's client for calls of other models (BLS); null for an ensemble. */
  readonly bls: BlsClient | null;
  /** Records of the warm-up requests, for the version's statistics. */
  readonly warmUps: readonly RequestRecord[];
}

export interface BuilderDependencies {
  /** The backends in order of preference: the first backend that supports a model runs it. */
  readonly backends: readonly Backend[];
  readonly backendConfig: (backend: string) => ReadonlyMap<string, string>;
  readonly autoComplete: boolean;
  readonly budget: MemoryBudget;
  readonly callers: ModelCallerDependencies;
  readonly clock: Clock;
  readonly log: Logger;
  readonly fillRandom: (bytes: Uint8Array) => void;
}

/** A version on disk to build, with the configuration found on disk, for one namespace. */
export interface VersionBuildOptions {
  readonly namespace: string;
  readonly arena: Arena;
  readonly metrics: NamespaceMetrics;
  readonly source: ModelSource;
  readonly config: ModelConfig;
  readonly signal: AbortSignal;
}

/** Builds versions within the memory budget. */
export class VersionBuilder {
  readonly #dependencies: BuilderDependencies;
  /** Loaded models by their charge. The charge is corrected when a model reports that its memory has changed. */
  readonly #loaded = new Map<ChargeOwner, LoadedModel>();
  /** Charges of models whose backend shares memory between equal models but does not report which model is charged after an unload. */
  readonly #sharing = new Set<ChargeOwner>();

  constructor(dependencies: BuilderDependencies) {
    this.#dependencies = dependencies;
  }

  async build(order: VersionBuildOptions): Promise<BuiltVersion> {
    const { source, config: found } = order;
    const startNs = this.#dependencies.clock.monotonicNs();
    const health: ModelHealth = { unhealthy: null };
    const caller = new ModelCaller(this.#dependencies.callers, order.namespace);
    const context: LoadContext = {
      arena: order.arena,
      metrics: order.metrics,
      bls: caller,
      backendConfig: this.#dependencies.backendConfig(found.backend),
      signal: order.signal,
      onHealth: (said) => {
        health.unhealthy = said.ok ? null : said.reason;
      },
    };
    // The label files are read first, so that an invalid one fails the load before any instance is started.
    const labels = await readLabels(source.modelDirectory, found);
    const { config, model, warmUps } = await this.#load(order, context);
    const loadNs = this.#dependencies.clock.monotonicNs() - startNs;
    caller.loaded();
    return { version: source.version, config, labels, model, health, loadNs, warmUps, bls: caller };
  }

  async #load(
    order: VersionBuildOptions,
    context: LoadContext,
  ): Promise<Pick<BuiltVersion, "config" | "model" | "warmUps">> {
    const { source, config: found } = order;
    // Unsupported features are rejected before a backend completes the configuration, because completing it opens the model, with libraries
    // that the configuration names.
    rejectUnsupported(found);
    const backend = await findBackend(this.#dependencies.backends, found.backend, source);
    const heldBytes = (await backend.heldBytes?.(source, found)) ?? 0;
    const content = await modelContent(source, found, heldBytes);
    const charge: ChargeOwner = { namespace: order.namespace };
    const what = `model '${source.servedName}' version ${source.version}`;
    const known = await backend.estimateBytes(source, found);
    const guess = estimateMemory(found, content);
    this.#dependencies.budget.reserve(charge, what, { known, contentKey: content.key, guess });
    try {
      const onMemory = () => void this.#correct(charge);
      const reserveMore = (bytes: DeviceBytes) => this.#reserveMore(charge, what, bytes);
      const opening = { ...context, onMemory, reserveMore };
      const { config, model } = await openModel(
        backend,
        { ...order, autoComplete: this.#dependencies.autoComplete },
        opening,
      );
      try {
        const warmUps = await warmUp(model, { ...order, ...this.#dependencies, config });
        this.#dependencies.budget.setMeasured(charge, what, content.key, await model.memoryBytes());
        this.#loaded.set(charge, model);
        if (known !== null) this.#sharing.add(charge);
        return { config, model: this.#charged(model, charge), warmUps };
      } catch (error) {
        await model[Symbol.asyncDispose]();
        throw error;
      }
    } catch (error) {
      this.#dependencies.budget.release(charge);
      throw error;
    }
  }

  /** Returns the model with a disposal that also releases its memory charge. */
  #charged(model: LoadedModel, charge: ChargeOwner): LoadedModel {
    return {
      instances: model.instances,
      ...(model.spares === undefined ? {} : { spares: model.spares }),
      memoryBytes: () => model.memoryBytes(),
      abandon: (reason) => model.abandon?.(reason),
      [Symbol.asyncDispose]: async () => {
        await model[Symbol.asyncDispose]();
        await this.#uncharge(charge);
      },
    };
  }

  /** Updates the charge of a model whose memory has changed. */
  async #correct(charge: ChargeOwner): Promise<void> {
    const { budget, log } = this.#dependencies;
    try {
      const bytes = await this.#loaded.get(charge)?.memoryBytes();
      if (bytes !== undefined) budget.correct(charge, bytes);
    } catch (error) {
      log.error(`failed to measure a model's memory; the previous value is kept: ${String(error)}`);
    }
  }

  #reserveMore(charge: ChargeOwner, what: string, bytes: DeviceBytes): AsyncDisposable {
    const { budget } = this.#dependencies;
    const more: ChargeOwner = { namespace: charge.namespace };
    budget.reserveBytes(more, `another instance of ${what}`, bytes);
    return {
      [Symbol.asyncDispose]: async () => {
        await this.#correct(charge);
        budget.release(more);
      },
    };
  }

  /** Releases a model's charge. Memory that the model shared with another loaded model is then charged to that model. */
  async #uncharge(charge: ChargeOwner): Promise<void> {
    this.#dependencies.budget.release(charge);
    this.#loaded.delete(charge);
    if (!this.#sharing.delete(charge)) return;
    for (const other of this.#sharing) {
      const model = this.#loaded.get(other);
      if (model !== undefined) this.#dependencies.budget.correct(other, await model.memoryBytes());
    }
  }
}
