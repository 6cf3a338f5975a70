import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { openDeadline, unreachable, type Clock, type Logger } from "../../base/index.ts";
import type { ArchiveUnpacker, ObjectStore } from "../../blobs/index.ts";
import type {
  ContainerPlace,
  ContainerSpec,
  HostedContainer,
  ContainerModels,
  ModelTrees,
} from "../../hosting/index.ts";
import { DirectoryTrees } from "./directory-trees.ts";
import { writeOwner, type LeftInstances } from "./left-instances.ts";
import { downloadModelData } from "./model-data.ts";

export interface ProcessPlaceOptions {
  readonly spec: ContainerSpec;
  /** In its instance, from 1: by it a container without a name is called. */
  readonly position: number;
  /** The container's own, absent before `prepare`; its containers find what /opt/ml means to them in `ml` below it. */
  readonly directory: string;
  readonly left: LeftInstances;
  readonly store: ObjectStore;
  readonly unpacker: ArchiveUnpacker;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Starts a container that finds its models below `mlRoot`. */
  readonly startContainer: (mlRoot: string, signal: AbortSignal) => Promise<HostedContainer>;
}

/** A container's place as a directory of this machine, and the processes that are started over it. */
export class ProcessPlace implements ContainerPlace, AsyncDisposable {
  readonly trees: ModelTrees | null;
  readonly #options: ProcessPlaceOptions;

  constructor(options: ProcessPlaceOptions) {
    this.#options = options;
    const { spec, store, unpacker, logger } = options;
    this.trees =
      spec.models.kind === "one"
        ? null
        : new DirectoryTrees({
            models: this.#modelsDirectory,
            descriptions: join(options.directory, "trees"),
            modelDataUrl: spec.models.owner.modelDataUrl,
            store,
            unpacker,
            logger,
          });
  }

  async prepare(signal: AbortSignal): Promise<void> {
    const { directory, spec } = this.#options;
    await rm(directory, { recursive: true, force: true });
    switch (spec.models.kind) {
      case "one":
        return await this.#bringOne(spec.models, signal);
      case "many":
        return await this.#openMany(spec.models);
      default:
        unreachable(spec.models);
    }
  }

  async #bringOne(
    { container, bringMsMax }: Extract<ContainerModels, { readonly kind: "one" }>,
    signal: AbortSignal,
  ): Promise<void> {
    const { store, unpacker, clock, position } = this.#options;
    await mkdir(this.#modelsDirectory, { recursive: true });
    using limit = openDeadline({ clock, afterMs: bringMsMax, signal });
    await downloadModelData(container, join(this.#mlRoot, "model"), {
      store,
      unpacker,
      containerName: container.ContainerHostname ?? `container_${position}`,
      signal: limit.signal,
    });
  }

  async #openMany({ owner }: Extract<ContainerModels, { readonly kind: "many" }>): Promise<void> {
    const { directory, left, unpacker } = this.#options;
    await left.take(owner, directory);
    await mkdir(this.#modelsDirectory, { recursive: true });
    await writeOwner(directory, owner);
    unpacker.prepare();
  }

  start(signal: AbortSignal): Promise<HostedContainer> {
    return this.#options.startContainer(this.#mlRoot, signal);
  }

  /** As `HostedInstance.leave`. */
  async leave(): Promise<void> {
    if (this.trees === null) await this[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#options.directory, { recursive: true, force: true });
  }

  get #mlRoot(): string {
    return join(this.#options.directory, "ml");
  }

  get #modelsDirectory(): string {
    return join(this.#mlRoot, "models");
  }
}
