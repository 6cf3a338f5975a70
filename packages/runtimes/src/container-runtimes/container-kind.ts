import type { PayloadCodec } from "@galatea/server/protocols";

/** Environment variables with which a container was started. */
export type ContainerEnvironment = Readonly<Record<string, string | undefined>>;

/** A model of an unpacked archive. */
export interface ArchivedModel {
  /** Name by which ensembles call it. The first model is the archive's own, whatever its served name is. */
  readonly name: string;
  /** A ModelConfig as JSON, without its name. Missing fields are completed as for any model. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Directory of its files, like a version directory of a repository. */
  readonly directory: string;
}

/**
 * Installs Python packages in addition to those of a framework that `galatea model add` installed; returns their directory. Throws
 * InferenceError.
 */
export type PackageInstaller = (framework: string, packages: readonly string[]) => Promise<string>;

/** Installs packages like a PackageInstaller; the directory exists until the result is disposed. */
export type PackageKeeper = (
  framework: string,
  packages: readonly string[],
) => Promise<Disposable & { readonly directory: string }>;

/** A container of some kind, for one environment. */
export interface OpenedContainer {
  readonly codec: PayloadCodec;
  /** Paths that every model's code may read, in addition to its own archive. */
  readonly readPaths: readonly string[];
  /** True if model code speaks HTTP with its own worker. */
  readonly opensPort: boolean;
  /** Time limit of a call of model code, in milliseconds, after which its process is ended; null: the limit of its invocation. */
  readonly callMsMax: number | null;
  /** Maximum body length of a call; null: the server's limit. */
  readonly bodyBytesMax: number | null;
  /** Lines for the log: settings without effect, and hints. */
  readonly notes: readonly string[];
  /**
   * Returns the models of an archive that was unpacked to `directory`, the archive's own first. Reads the directory and writes nothing.
   * Throws InferenceError when it has no models.
   */
  modelsIn(directory: string, installer: PackageInstaller): Promise<readonly [ArchivedModel, ...ArchivedModel[]]>;
}

/** A container that cannot start; the message goes to stderr. */
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

/** A kind of SageMaker container other than Triton's: the content of its archives, and its request format. */
export interface ContainerKind {
  /** Throws ContainerRefusal. */
  open(start: KindStart): OpenedContainer;
}
