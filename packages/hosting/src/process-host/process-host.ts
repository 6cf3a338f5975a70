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
  /** The complete environment of the process, including the variables of the spec. */
  readonly env: Readonly<Record<string, string>>;
}

/** The input of `commandFor`: one start of a built-in container. */
export interface ContainerStart {
  readonly spec: ContainerSpec;
  readonly runtime: BuiltInRuntime;
  /** An existing directory that the container uses, read-only, as /opt/ml. */
  readonly mlRoot: string;
  /** The Unix socket that the container must listen on. */
  readonly socketPath: string;
}

export interface ProcessHostOptions {
  /** Returns the command of a process that serves the container contract on the socket. */
  readonly commandFor: (start: ContainerStart) => ContainerCommand;
  /**
   * Directory for the sockets of this host, which no other program may use. Created if absent. Its path must be short, because the path of
   * a Unix socket has at most 107 bytes.
   */
  readonly socketsDirectory: string;
  /** Directory with one subdirectory for each container. It must be on the unpacker's file system, because files are hard-linked. */
  readonly instancesDirectory: string;
  readonly store: ObjectStore;
  readonly unpacker: ArchiveUnpacker;
  /** Runs containers of images; null if there is no container engine. The caller disposes it after the host. */
  readonly images?: ImageRunner | null;
  /** Returns the current state of the machine's GPUs. */
  readonly gpus?: MachineGpus["gpus"];
  readonly clock: Clock;
  readonly logger: Logger;
}

const noGpus = () => [];
const socketPathBytesMax = 107;

/**
 * Runs instances on this machine: built-in containers as local processes, with a directory and a Unix socket each, and images through an
 * `ImageRunner`. Both keep running if this process is killed or calls `detach`. A later host with the same directories adopts them.
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
  /** The name of the slot's directory and socket. */
  readonly id: string;
  readonly instanceId: string;
  readonly spec: ContainerSpec;
  /** The number of the container in its instance, from 1. A container without ContainerHostname is named after it: `container_1`. */
  readonly position: number;
  /** The owner of the instance. */
  readonly owner: InstanceOwner | null;
  readonly node: InstanceSpec["node"];
  readonly budget: InstanceSpec["budget"];
  readonly bootId: string;
  /** Returns true if the slot's container keeps running after this host. */
  readonly isDetached: () => boolean;
  /** Wraps a process of the slot as a container that this host tracks. */
  readonly trackProcess: (running: DetachedProcess, socketPath: string) => ProcessContainer;
  /** Registers a container, so that the host stops it when the host is disposed. */
  readonly track: (container: HostedContainer) => void;
}

const submittedCodeVariable = "SAGEMAKER_SUBMIT_DIRECTORY";

/** A container's slot: a local directory, and the processes or image containers that run in it one after another. */
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

  /** Adopts a process of the previous run. Returns null if the process has ended or uses another socket. */
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
    // An image downloads its code itself.
    await (image === null ? this.#downloadCode(signal) : image.runner.pull(image.slot.image, signal));
  }

  /** The runner and the slot of an image; null for a built-in container. Throws if the host cannot run images. */
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

  /** Downloads SAGEMAKER_SUBMIT_DIRECTORY from S3 to `code`, as SageMaker's containers do. All models of the container share this code. */
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

  /**
   * Removes the directory of the slot when the platform shuts down. Keeps it for a multi-model container, whose unpacked models the next
   * run adopts.
   */
  async shutDown(): Promise<void> {
    if (this.trees === null) await this[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
  }

  get #socketPath(): string {
    return join(this.#options.socketsDirectory, `${this.#options.id}.sock`);
  }

  /** The slot's directory. `prepare` creates it. */
  get #directory(): string {
    return join(this.#options.instancesDirectory, this.#options.id);
  }

  /** The directory of the pipes to which the process writes its output. */
  get #outputDirectory(): string {
    return join(this.#directory, "output");
  }

  /** The directory that the container uses as /opt/ml. */
  get #mlRoot(): string {
    return join(this.#directory, "ml");
  }

  get #modelsDirectory(): string {
    return join(this.#mlRoot, "models");
  }
}

/** Entries of the slot's directory that `prepare` keeps for a multi-model container whose process has ended. */
const keptNames: ReadonlySet<string> = new Set(["ml", "trees", "container.json"]);
const modelsName: ReadonlySet<string> = new Set(["models"]);
const noNames: ReadonlySet<string> = new Set();

async function emptyDirectory(directory: string, kept: ReadonlySet<string>): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const name of await readdir(directory)) {
    if (!kept.has(name)) await rm(join(directory, name), { recursive: true, force: true });
  }
}
