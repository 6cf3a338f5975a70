import { existsSync } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { assert, makeSharedDirectory, openDeadline, unreachable, type Clock, type Logger } from "@galatea/base";
import { adoptDetached, adoptOrphans, startDetached, type DetachedProcess } from "@galatea/base/processes";
import type { BuiltInRuntime, ContainerDefinition } from "../definitions/index.ts";
import type { ArchiveUnpacker, ObjectStore } from "../objects/index.ts";
import {
  containerDigest,
  type ContainerModels,
  type ContainerSlot,
  type ContainerSpec,
  type HostedContainer,
  type HostedInstance,
  type InstanceOwner,
  type InstanceSpec,
  type AdoptableInstance,
  type ModelHost,
} from "../instances/index.ts";
import type { UnpackedModels } from "../model-cache/index.ts";
import { readBootId, readContainerFile, writeContainerFile, type ContainerProcess } from "./container-file.ts";
import { DirectoryTrees } from "./directory-trees.ts";
import { deleteAllUnlinkedContents, stopContainerProcess, AdoptableInstances } from "./adoptable-instances.ts";
import type { ImageRunner, ImageSlot } from "./image-runner.ts";
import { downloadModelData } from "./model-data.ts";
import { ProcessContainer, type MachineGpus } from "./process-container.ts";

export interface ContainerCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment of the process, the variables of the spec included. */
  readonly env: Readonly<Record<string, string>>;
}

/** The input of `commandFor`. */
export interface ContainerStart {
  readonly spec: ContainerSpec;
  readonly runtime: BuiltInRuntime;
  /** The existing directory that stands for /opt/ml. The container only reads it. */
  readonly mlRoot: string;
  /** The Unix socket that the container must listen on. */
  readonly socketPath: string;
}

export interface ProcessHostOptions {
  /** Returns the command of a process that serves the container contract on the socket. */
  readonly commandFor: (start: ContainerStart) => ContainerCommand;
  /** For the sockets of this host alone, created when absent. Keep its path short: the path of a Unix socket has at most 107 bytes. */
  readonly socketsDirectory: string;
  /** Gets one directory for each container. Must be on the unpacker's file system, for hard links. */
  readonly instancesDirectory: string;
  readonly store: ObjectStore;
  readonly unpacker: ArchiveUnpacker;
  /** Runs the containers whose program is an image; null where there is no container engine. The caller disposes of it after the host. */
  readonly images?: ImageRunner | null;
  /** The machine's GPUs as they are now. */
  readonly gpus?: MachineGpus["gpus"];
  readonly clock: Clock;
  readonly logger: Logger;
}

const noGpus = () => [];
const socketPathBytesMax = 107;

/**
 * Runs instances on this machine: built-in containers as local processes, with a directory and a Unix socket each, and images through an
 * `ImageRunner`. Both outlive this process when it is killed or calls `detach`; a later host over the same directories adopts them.
 */
export class ProcessHost implements ModelHost {
  readonly #options: ProcessHostOptions;
  readonly #left = new AdoptableInstances();
  readonly #running = new Set<HostedContainer>();
  readonly #bootId = readBootId();
  #isDetached = false;

  constructor(options: ProcessHostOptions) {
    this.#options = options;
    adoptOrphans();
  }

  get runsImages(): boolean {
    return (this.#options.images ?? null) !== null;
  }

  async resume(desired: readonly InstanceOwner[]): Promise<ReadonlySet<string>> {
    const { instancesDirectory, socketsDirectory, unpacker, images = null, clock } = this.#options;
    await mkdir(instancesDirectory, { recursive: true });
    await mkdir(socketsDirectory, { recursive: true, mode: 0o700 });
    await this.#left.open({ directory: instancesDirectory, socketsDirectory, desired, clock });
    if (unpacker.contentDirectory !== null) await deleteAllUnlinkedContents(unpacker.contentDirectory);
    await images?.keepOnly(this.#left.ids);
    return this.#left.ids;
  }

  claim(owner: InstanceOwner): AdoptableInstance | null {
    return this.#left.claim(owner);
  }

  detach(): void {
    this.#isDetached = true;
  }

  open({ instanceId, node, owner, budget, containers }: InstanceSpec): HostedInstance {
    const slots = containers.map((spec, index) => {
      const id = index === 0 ? instanceId : `${instanceId}-${index + 1}`;
      return new ProcessSlot({
        ...this.#options,
        id,
        instanceId,
        spec,
        position: index + 1,
        owner,
        node,
        budget,
        bootId: this.#bootId,
        isDetached: () => this.#staysRunning(owner),
        trackProcess: (running, socketPath) => this.#trackProcess(running, socketPath, owner),
        track: (container) => this.#track(container),
      });
    });
    return {
      slots,
      shutDown: async () => {
        if (!this.#staysRunning(owner)) await Promise.all(slots.map((slot) => slot.shutDown()));
      },
      [Symbol.asyncDispose]: async () => void (await Promise.all(slots.map((slot) => slot[Symbol.asyncDispose]()))),
    };
  }

  #trackProcess(running: DetachedProcess, socketPath: string, owner: InstanceOwner | null): ProcessContainer {
    const container = new ProcessContainer(running, socketPath, {
      directory: this.#options.instancesDirectory,
      machine: { gpus: this.#options.gpus ?? noGpus },
      bootId: this.#bootId,
      isDetached: () => this.#staysRunning(owner),
    });
    this.#track(container);
    return container;
  }

  #track(container: HostedContainer): void {
    this.#running.add(container);
    void container.ended.then(() => this.#running.delete(container));
  }

  #staysRunning(owner: InstanceOwner | null): boolean {
    return this.#isDetached && owner !== null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running].map((container) => container.stop(0)));
  }
}

interface ProcessSlotOptions extends ProcessHostOptions {
  /** Names the slot's directory and socket. */
  readonly id: string;
  readonly instanceId: string;
  readonly spec: ContainerSpec;
  /** The container's position in its instance, from 1. Names a container without ContainerHostname: `container_1`. */
  readonly position: number;
  /** The owner of the instance. */
  readonly owner: InstanceOwner | null;
  readonly node: InstanceSpec["node"];
  readonly budget: InstanceSpec["budget"];
  readonly bootId: string;
  /** Returns whether the slot's container outlives this host. */
  readonly isDetached: () => boolean;
  /** Returns a process of the slot as a container of the host. */
  readonly trackProcess: (running: DetachedProcess, socketPath: string) => ProcessContainer;
  /** Makes the host stop the container at its disposal. */
  readonly track: (container: HostedContainer) => void;
}

const submittedCodeVariable = "SAGEMAKER_SUBMIT_DIRECTORY";

/** A container's slot as a local directory, and the processes or containers of an image that are started in it one after another. */
class ProcessSlot implements ContainerSlot, AsyncDisposable {
  readonly trees: UnpackedModels | null;
  readonly #options: ProcessSlotOptions;

  constructor(options: ProcessSlotOptions) {
    this.#options = options;
    const { spec, store, unpacker, logger } = options;
    this.trees =
      spec.models.kind === "one"
        ? null
        : new DirectoryTrees({
            models: this.#modelsDirectory,
            descriptions: join(this.#directory, "trees"),
            modelDataUrl: spec.models.modelDataUrl,
            store,
            unpacker,
            logger,
          });
  }

  async adopt(signal: AbortSignal): Promise<HostedContainer | null> {
    const { spec, clock, track } = this.#options;
    const image = this.#image;
    if (image !== null) {
      const adopted = await image.runner.adopt(image.slot, signal);
      if (adopted !== null) track(adopted);
      return adopted;
    }
    const file = await readContainerFile(this.#directory);
    if (file === null || file.process === null) return null;
    const isSame = file.specDigest === containerDigest(spec);
    const adopted = isSame ? this.#adoptProcess(file.process) : null;
    if (adopted === null) await stopContainerProcess(file.process, clock);
    return adopted;
  }

  /** Returns null for a process that has ended or has another socket. */
  #adoptProcess(process: ContainerProcess): ProcessContainer | null {
    const { spec, bootId, clock, trackProcess } = this.#options;
    const socketPath = this.#socketPath;
    if (process.bootId !== bootId || process.socketPath !== socketPath || !existsSync(socketPath)) return null;
    const output = { outputDirectory: this.#outputDirectory, onLine: spec.output, clock };
    const running = adoptDetached(process, output);
    return running === null ? null : trackProcess(running, socketPath);
  }

  async prepare(signal: AbortSignal): Promise<void> {
    const directory = this.#directory;
    const { models } = this.#options.spec;
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
    const image = this.#image;
    // The program of an image downloads its code itself.
    await (image === null ? this.#downloadCode(signal) : image.runner.pull(image.slot.image, signal));
  }

  /** The runner and the slot of an image; null for a built-in container. Throws where the host runs no images. */
  get #image(): { readonly runner: ImageRunner; readonly slot: ImageSlot } | null {
    const { spec, images = null, id, instanceId, budget, isDetached } = this.#options;
    if (typeof spec.runtime === "string") return null;
    const { image } = spec.runtime;
    if (images === null) {
      throw new Error(
        `The image ${image} needs a container engine: start the platform with --container-engine, as it was when the model was created.`,
      );
    }
    const place = { directory: this.#directory, mlRoot: this.#mlRoot };
    return {
      runner: images,
      slot: { id, instanceId, image, spec, specDigest: containerDigest(spec), budget, ...place, isDetached },
    };
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
    const image = this.#image;
    if (image === null) return await this.#startProcess(signal);
    const container = await image.runner.start(image.slot, signal);
    this.#options.track(container);
    return container;
  }

  async #startProcess(signal: AbortSignal): Promise<HostedContainer> {
    const { spec, socketsDirectory, clock, commandFor, trackProcess } = this.#options;
    const { runtime } = spec;
    assert(typeof runtime === "string", "an image is no process");
    const mlRoot = this.#mlRoot;
    const socketPath = this.#socketPath;
    const outputDirectory = this.#outputDirectory;
    await mkdir(outputDirectory, { recursive: true, mode: 0o700 });
    if (Buffer.byteLength(socketPath) > socketPathBytesMax) {
      throw new Error(
        `the socket path ${socketPath} is longer than ${socketPathBytesMax} bytes; choose a shorter directory`,
      );
    }
    await mkdir(socketsDirectory, { recursive: true, mode: 0o700 });
    // A socket file outlives its process, and binding to an existing path fails with EADDRINUSE.
    await rm(socketPath, { force: true });
    signal.throwIfAborted();
    const { command, args, env } = commandFor({ spec, runtime, mlRoot, socketPath });
    const output = { outputDirectory, onLine: spec.output, clock };
    const started = trackProcess(await startDetached({ command, args, env, cwd: mlRoot, ...output }), socketPath);
    await this.#describe(started.process);
    return started;
  }

  async #describe(process: ContainerProcess | null): Promise<void> {
    const { owner, node, spec } = this.#options;
    const modelDataUrl = spec.models.kind === "many" ? spec.models.modelDataUrl : null;
    await writeContainerFile(this.#directory, {
      owner,
      node,
      modelDataUrl,
      specDigest: containerDigest(spec),
      process,
    });
  }

  /** See `HostedInstance.shutDown`: keeps the directory of a multi-model container for the next run, removes others. */
  async shutDown(): Promise<void> {
    if (this.trees === null) await this[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
  }

  get #socketPath(): string {
    return join(this.#options.socketsDirectory, `${this.#options.id}.sock`);
  }

  /** Created by `prepare`. */
  get #directory(): string {
    return join(this.#options.instancesDirectory, this.#options.id);
  }

  /** The process writes to pipes in it. */
  get #outputDirectory(): string {
    return join(this.#directory, "output");
  }

  /** Stands for /opt/ml. */
  get #mlRoot(): string {
    return join(this.#directory, "ml");
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
