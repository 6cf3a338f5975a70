import type { PayloadCodec } from "@galatea/server/protocols";

/** Environment variables of a container. */
export type ContainerEnvironment = Readonly<Record<string, string | undefined>>;

/** A model of an unpacked archive. */
export interface ArchivedModel {
  /** Name by which ensembles refer to the model. The archive's own model has another name for clients, its served name. */
  readonly name: string;
  /** A ModelConfig as JSON, without `name`. Missing fields are completed as for any model. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Directory of the model's files, like a version directory of a model repository. */
  readonly directory: string;
}

/**
 * Installs Python packages in addition to the packages of a framework, which `galatea model add` installed, and returns their directory.
 * Rejects with InferenceError if an installation fails.
 */
export type PackageInstaller = (framework: string, packages: readonly string[]) => Promise<string>;

/** Installs packages like a PackageInstaller. The returned lease keeps the directory until it is disposed. */
export type PackageKeeper = (
  framework: string,
  packages: readonly string[],
) => Promise<Disposable & { readonly directory: string }>;

/** A container kind with validated settings, ready to serve archives. */
export interface OpenedContainer {
  readonly codec: PayloadCodec;
  /** Paths that model code may read, in addition to its own archive. */
  readonly readPaths: readonly string[];
  /** True if the process of a model listens on a local port, so that model code can send HTTP requests to it. */
  readonly opensPort: boolean;
  /** Time limit of a call of model code, in milliseconds, after which its process is killed; null: the time limit of the invocation. */
  readonly callMsMax: number | null;
  /** Maximum length of a request body, in bytes; null: the server's limit. */
  readonly bodyBytesMax: number | null;
  /** Lines to log at start: settings without effect, and hints. */
  readonly notes: readonly string[];
  /**
   * Returns the models of the archive that was unpacked to `directory`; the archive's own model is the first. Does not write to the
   * directory. Rejects with InferenceError if the archive has no models.
   */
  modelsIn(directory: string, installer: PackageInstaller): Promise<readonly [ArchivedModel, ...ArchivedModel[]]>;
}

/** The error for a container that cannot start; its message is written to stderr. */
export class ContainerRefusal extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ContainerRefusal";
  }
}

/** The start options of a container. */
export interface KindStart {
  readonly environment: ContainerEnvironment;
  /** The directory that replaces /opt/ml. */
  readonly mlRoot: string;
  readonly isMultiModel: boolean;
}

/** A kind of SageMaker container other than Triton's: defines the content of its archives and its request format. */
export interface ContainerKind {
  /** Validates the environment. Throws ContainerRefusal for an invalid value. */
  open(start: KindStart): OpenedContainer;
}
