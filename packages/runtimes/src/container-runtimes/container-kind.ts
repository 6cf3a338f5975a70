import type { PayloadCodec } from "@galatea/server/protocols";

/** Variables as a container was started with them. */
export type ContainerEnvironment = Readonly<Record<string, string | undefined>>;

/** A model that an unpacked archive is, or is made of. */
export interface ArchivedModel {
  /** Of the first, which is the archive's own, whatever it is served under; of others the name that ensembles call them by. */
  readonly name: string;
  /** A ModelConfig as JSON, without its name. What it leaves out is completed as for any model. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Where its files lie: what a repository has as the directory of a version. */
  readonly directory: string;
}

/** Installs packages of Python beside those of a framework that `galatea model add` set up; gives their directory. Throws InferenceError. */
export type PackageInstaller = (framework: string, packages: readonly string[]) => Promise<string>;

/** The same, for whoever disposes what it gives: until then the directory stays. */
export type PackageKeeper = (
  framework: string,
  packages: readonly string[],
) => Promise<Disposable & { readonly directory: string }>;

/** What a kind of container makes of the environment that one of it is started with. */
export interface OpenedContainer {
  readonly codec: PayloadCodec;
  /** Read by every model's code, beside its own archive. */
  readonly readPaths: readonly string[];
  /** Whether model code speaks HTTP with its own worker. */
  readonly opensPort: boolean;
  /** The limit of a call of model code, in milliseconds, after which its process is ended; null: the limit of its invocation. */
  readonly callMsMax: number | null;
  /** The longest body of a call; null: as long as the server takes any. */
  readonly bodyBytesMax: number | null;
  /** Lines for the log: what was accepted without effect, and hints. */
  readonly notes: readonly string[];
  /**
   * The models of an archive that was unpacked to `directory`, the archive's own first. Reads the directory and writes nothing. Throws
   * InferenceError where it holds nothing that can be served.
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

/** What a container is started with. */
export interface KindStart {
  readonly environment: ContainerEnvironment;
  /** The directory that stands for /opt/ml. */
  readonly mlRoot: string;
  readonly isMultiModel: boolean;
}

/** One kind of container of SageMaker's, other than Triton's: what its archives hold, and what language it speaks. */
export interface ContainerKind {
  /** Throws ContainerRefusal. */
  open(start: KindStart): OpenedContainer;
}
