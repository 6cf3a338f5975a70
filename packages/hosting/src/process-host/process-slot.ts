import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { makeSharedDirectory, openDeadline, unreachable, type Clock, type Logger } from "@galatea/base";
import type { ArchiveUnpacker, ObjectStore } from "../objects/index.ts";
import type {
  ContainerDefinition,
  ContainerSlot,
  ContainerSpec,
  HostedContainer,
  InstanceOwner,
  InstanceSpec,
  ContainerModels,
  ModelTrees,
} from "../index.ts";
import { DirectoryTrees } from "./directory-trees.ts";
import { readContainerFile, specDigest, writeContainerFile, type ContainerProcess } from "./container-file.ts";
import { endProcess } from "./left-instances.ts";
import { downloadModelData } from "./model-data.ts";

export interface ProcessSlotOptions {
  readonly spec: ContainerSpec;
  /** The container's position in its instance, from 1. Names a container without ContainerHostname: `container_1`. */
  readonly position: number;
  /** The directory of this slot, created by `prepare`; `ml` below it stands for /opt/ml. */
  readonly directory: string;
  /** The owner of the instance. */
  readonly owner: InstanceOwner | null;
  readonly node: InstanceSpec["node"];
  readonly store: ObjectStore;
  readonly unpacker: ArchiveUnpacker;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly processes: SlotProcesses;
}

/** Starts and adopts the process of a slot: it reads models below `mlRoot` and writes to pipes in `outputDirectory`. */
export interface SlotProcesses {
  start(at: ProcessDirectories, signal: AbortSignal): Promise<HostedContainer & { readonly process: ContainerProcess }>;
  /** Returns null for a process that has ended or has another socket. */
  adopt(process: ContainerProcess, at: ProcessDirectories): HostedContainer | null;
}

export interface ProcessDirectories {
  readonly mlRoot: string;
  readonly outputDirectory: string;
}

const submittedCodeVariable = "SAGEMAKER_SUBMIT_DIRECTORY";

/** A container's slot as a local directory, and the processes that are started in it one after another. */
export class ProcessSlot implements ContainerSlot, AsyncDisposable {
  readonly trees: ModelTrees | null;
  readonly #options: ProcessSlotOptions;

  constructor(options: ProcessSlotOptions) {
    this.#options = options;
    const { spec, store, unpacker, logger } = options;
    this.trees =
      spec.models.kind === "one"
        ? null
        : new DirectoryTrees({
            models: this.#modelsDirectory,
            descriptions: join(options.directory, "trees"),
            modelDataUrl: spec.models.modelDataUrl,
            store,
            unpacker,
            logger,
          });
  }

  async adopt(_signal: AbortSignal): Promise<HostedContainer | null> {
    const { directory, spec, processes, clock } = this.#options;
    const file = await readContainerFile(directory);
    if (file === null || file.process === null) return null;
    const isSame = file.specDigest === specDigest(spec);
    const adopted = isSame ? processes.adopt(file.process, this.#directories) : null;
    if (adopted === null) await endProcess(file.process, clock);
    return adopted;
  }

  async prepare(signal: AbortSignal): Promise<void> {
    const { directory, spec } = this.#options;
    const { models } = spec;
    const file = await readContainerFile(directory);
    const keepsModels = models.kind === "many" && file?.modelDataUrl === models.modelDataUrl;
    await emptyDirectory(directory, keepsModels ? keptNames : noNames);
    await makeSharedDirectory(this.#modelsDirectory);
    switch (models.kind) {
      case "one":
        await this.#downloadModel(models, signal);
        break;
      case "many":
        await emptyDirectory(this.#mlRoot, modelsName);
        this.#options.unpacker.prepare();
        break;
      default:
        unreachable(models);
    }
    await this.#describe(null);
    await this.#downloadCode(signal);
  }

  /** Downloads SAGEMAKER_SUBMIT_DIRECTORY from S3 to `code`, as SageMaker's containers do: one script for all archives of the container. */
  async #downloadCode(signal: AbortSignal): Promise<void> {
    const { spec } = this.#options;
    const url = spec.environment[submittedCodeVariable] ?? "";
    const directory = join(this.#mlRoot, "code");
    if (url.startsWith("s3://")) await this.#download({ ModelDataUrl: url }, directory, signal);
  }

  async #download(container: ContainerDefinition, directory: string, signal: AbortSignal): Promise<void> {
    const { store, unpacker, position, spec } = this.#options;
    const { models } = spec;
    const name = models.kind === "one" ? models.container.ContainerHostname : undefined;
    const containerName = name ?? `container_${position}`;
    await downloadModelData(container, directory, { store, unpacker, containerName, signal });
  }

  async #downloadModel(
    { container, bringMsMax }: Extract<ContainerModels, { readonly kind: "one" }>,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#options;
    using limit = openDeadline({ clock, afterMs: bringMsMax, signal });
    await this.#download(container, join(this.#mlRoot, "model"), limit.signal);
  }

  async start(signal: AbortSignal): Promise<HostedContainer> {
    await mkdir(this.#directories.outputDirectory, { recursive: true, mode: 0o700 });
    const started = await this.#options.processes.start(this.#directories, signal);
    await this.#describe(started.process);
    return started;
  }

  async #describe(process: ContainerProcess | null): Promise<void> {
    const { directory, owner, node, spec } = this.#options;
    const modelDataUrl = spec.models.kind === "many" ? spec.models.modelDataUrl : null;
    await writeContainerFile(directory, { owner, node, modelDataUrl, specDigest: specDigest(spec), process });
  }

  /** See `HostedInstance.leave`: keeps the directory of a multi-model container for the next run, removes others. */
  async leave(): Promise<void> {
    if (this.trees === null) await this[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#options.directory, { recursive: true, force: true });
  }

  get #directories(): ProcessDirectories {
    return { mlRoot: this.#mlRoot, outputDirectory: join(this.#options.directory, "output") };
  }

  get #mlRoot(): string {
    return join(this.#options.directory, "ml");
  }

  get #modelsDirectory(): string {
    return join(this.#mlRoot, "models");
  }
}

/** The entries that `prepare` keeps for a multi-model container whose process has ended. */
const keptNames: ReadonlySet<string> = new Set(["ml", "trees", "container.json"]);
const modelsName: ReadonlySet<string> = new Set(["models"]);
const noNames: ReadonlySet<string> = new Set();

async function emptyDirectory(directory: string, kept: ReadonlySet<string>): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const name of await readdir(directory)) {
    if (!kept.has(name)) await rm(join(directory, name), { recursive: true, force: true });
  }
}
