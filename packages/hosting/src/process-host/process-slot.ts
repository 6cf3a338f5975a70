import { existsSync } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { assert, makeSharedDirectory, openDeadline, unreachable } from "@galatea/base";
import { adoptDetached, startDetached, type DetachedProcess } from "@galatea/base/processes";
import type { ContainerDefinition } from "../definitions/index.ts";
import {
  containerDigest,
  type ContainerModels,
  type ContainerSlot,
  type ContainerSpec,
  type HostedContainer,
  type InstanceOwner,
  type InstanceSpec,
} from "../instances/index.ts";
import type { UnpackedModels } from "../model-cache/index.ts";
import { stopContainerProcess } from "./adoptable-instances.ts";
import { readContainerFile, writeContainerFile, type ContainerProcess } from "./container-file.ts";
import { DirectoryTrees } from "./directory-trees.ts";
import type { ImageRunner, ImageSlot } from "./image-runner.ts";
import { downloadModelData } from "./model-data.ts";
import type { ProcessContainer } from "./process-container.ts";
import type { ProcessHostOptions } from "./process-host-options.ts";

const socketPathBytesMax = 107;

export interface ProcessSlotOptions extends ProcessHostOptions {
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
export class ProcessSlot implements ContainerSlot, AsyncDisposable {
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
    const { spec, clock, track, logger, id } = this.#options;
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
    if (!isSame)
      logger.info(
        "a container of the previous run is replaced, not adopted: its settings differ, for example AWS_ENDPOINT_URL if the platform has another port",
        { container: id },
      );
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
