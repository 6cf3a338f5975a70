import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { makeSharedDirectory, openDeadline, unreachable, type Clock, type Logger } from "@galatea/base";
import type { ArchiveUnpacker, ObjectStore } from "../objects/index.ts";
import type {
  ContainerDefinition,
  ContainerPlace,
  ContainerSpec,
  HostedContainer,
  InstanceOwner,
  ContainerModels,
  ModelTrees,
} from "../index.ts";
import { DirectoryTrees } from "./directory-trees.ts";
import { readContainerFile, specDigest, writeContainerFile, type ContainerProcess } from "./container-file.ts";
import { endProcess } from "./left-instances.ts";
import { downloadModelData } from "./model-data.ts";

export interface ProcessPlaceOptions {
  readonly spec: ContainerSpec;
  /** In its instance, from 1: by it a container without a name is called. */
  readonly position: number;
  /** The container's own, absent before `prepare`; its containers find what /opt/ml means to them in `ml` below it. */
  readonly directory: string;
  /** As the instance's. */
  readonly owner: InstanceOwner | null;
  readonly store: ObjectStore;
  readonly unpacker: ArchiveUnpacker;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly processes: PlaceProcesses;
}

/** How a place starts a process that finds its models below `mlRoot` and prints to pipes in `outputDirectory`, and takes one over. */
export interface PlaceProcesses {
  start(at: ProcessDirectories, signal: AbortSignal): Promise<HostedContainer & { readonly process: ContainerProcess }>;
  /** Null where it has ended, or does not answer where it should. */
  adopt(process: ContainerProcess, at: ProcessDirectories): HostedContainer | null;
}

export interface ProcessDirectories {
  readonly mlRoot: string;
  readonly outputDirectory: string;
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
        await this.#bringOne(models, signal);
        break;
      case "many":
        await emptyDirectory(this.#mlRoot, modelsName);
        this.#options.unpacker.prepare();
        break;
      default:
        unreachable(models);
    }
    await this.#describe(null);
    await this.#bringCode(signal);
  }

  /** The script that all archives of the container share, where one lies in S3: SageMaker's containers fetch it themselves, to the same place. */
  async #bringCode(signal: AbortSignal): Promise<void> {
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

  async #bringOne(
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
    const { directory, owner, spec } = this.#options;
    const modelDataUrl = spec.models.kind === "many" ? spec.models.modelDataUrl : null;
    await writeContainerFile(directory, { owner, modelDataUrl, specDigest: specDigest(spec), process });
  }

  /** As `HostedInstance.leave`. */
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

/** What is taken over of the directory of a container with many models that has ended. */
const keptNames: ReadonlySet<string> = new Set(["ml", "trees", "container.json"]);
const modelsName: ReadonlySet<string> = new Set(["models"]);
const noNames: ReadonlySet<string> = new Set();

async function emptyDirectory(directory: string, kept: ReadonlySet<string>): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const name of await readdir(directory)) {
    if (!kept.has(name)) await rm(join(directory, name), { recursive: true, force: true });
  }
}
