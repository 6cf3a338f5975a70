import { rm } from "node:fs/promises";
import { join } from "node:path";
import { makeSharedDirectory, openDeadline, unreachable, type Clock, type Logger } from "@galatea/base";
import type { ArchiveUnpacker, ObjectStore } from "../objects/index.ts";
import type {
  ContainerDefinition,
  ContainerPlace,
  ContainerSpec,
  HostedContainer,
  ContainerModels,
  ModelTrees,
} from "../index.ts";
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

const submittedCodeVariable = "SAGEMAKER_SUBMIT_DIRECTORY";

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
        await this.#bringOne(spec.models, signal);
        break;
      case "many":
        await this.#openMany(spec.models);
        break;
      default:
        unreachable(spec.models);
    }
    await this.#bringCode(signal);
  }

  /** The script that all archives of the container share, where one lies in S3: SageMaker's containers fetch it themselves, to the same place. */
  async #bringCode(signal: AbortSignal): Promise<void> {
    const { spec } = this.#options;
    const url = spec.environment[submittedCodeVariable] ?? "";
    const directory = join(this.#mlRoot, "code");
    // One that an earlier life left may be of another model.
    await rm(directory, { recursive: true, force: true });
    if (url.startsWith("s3://")) await this.#download({ ModelDataUrl: url }, directory, signal);
  }

  async #download(container: ContainerDefinition, directory: string, signal: AbortSignal): Promise<void> {
    const { store, unpacker, position, spec } = this.#options;
    const { models } = spec;
    const name = models.kind === "one" ? models.container.ContainerHostname : undefined;
    const containerName = name ?? `container_${position}`;
    await downloadModelData(container, directory, { store, unpacker, containerName, signal });
  }

  async #bringOne(
    { container, bringMsMax }: Extract<ContainerModels, { readonly kind: "one" }>,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#options;
    await makeSharedDirectory(this.#modelsDirectory);
    using limit = openDeadline({ clock, afterMs: bringMsMax, signal });
    await this.#download(container, join(this.#mlRoot, "model"), limit.signal);
  }

  async #openMany({ owner }: Extract<ContainerModels, { readonly kind: "many" }>): Promise<void> {
    const { directory, left, unpacker } = this.#options;
    await left.take(owner, directory);
    await makeSharedDirectory(this.#modelsDirectory);
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
