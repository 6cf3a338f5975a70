import { containerArguments } from "./container-arguments.ts";
import { UsageError } from "./flag.ts";
import { parseFlags, type OptionsOf, type Parsed } from "./parse-flags.ts";
import { serveFlags, type ServedContainerKind } from "./serve-flags.ts";

type ServeFlagOptions = OptionsOf<typeof serveFlags>;

/** The container contract that a server serves, and its listener. */
export interface ServedContainer {
  readonly listen: { readonly socketPath: string } | { readonly host: string; readonly port: number };
  readonly mlRoot: string;
  /**
   * True if no repository was given. SAGEMAKER_* variables then configure the server, as in the `serve` entry point of
   * Triton's image.
   */
  readonly fromEnvironment: boolean;
  /** The kind of container. A kind other than `tritonserver` requires `fromEnvironment`. */
  readonly kind: ServedContainerKind;
}

/** The options of `galatea serve`, checked against each other. */
export interface ServeOptions extends ServeFlagOptions {
  /** The container contract; null if it is not served. */
  readonly container: ServedContainer | null;
  /** True if missing parts of model configurations are derived from model files. */
  readonly autoComplete: boolean;
}

/**
 * Returns the options of `serve`. A container without a repository also reads options from its environment; flags of
 * the command line override them. Throws UsageError.
 */
export function serveOptions(
  { options, argv }: Parsed<ServeFlagOptions>,
  env: Readonly<Record<string, string | undefined>>,
): ServeOptions {
  const own = checked(options);
  if (own.container?.fromEnvironment !== true) return own;
  const joined = withEnvironment(argv, containerArguments(env));
  return { ...joined, container: { ...own.container, listen: joined.container?.listen ?? own.container.listen } };
}

/**
 * Parses the arguments from the environment, followed by those of the command line. The command line is valid on its
 * own, so an error is reported for the environment.
 */
function withEnvironment(argv: readonly string[], words: readonly string[]): ServeOptions {
  try {
    const [extra] = parseFlags(words, serveFlags).positionals;
    if (extra !== undefined) throw new UsageError(`unexpected argument '${extra}'`);
    return checked(parseFlags([...words, ...argv], serveFlags).options);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new UsageError(`the container's environment: ${error.message}`);
  }
}

/** Checks flags against each other, as Triton does. */
function checked(options: ServeFlagOptions): ServeOptions {
  const container = containerOf(options);
  if (options.modelRepository.length === 0 && container === null)
    throw new UsageError("Error: --model-repository must be specified");
  const { loadModel } = options;
  if (loadModel.length > 0 && options.modelControlMode !== "explicit")
    throw new UsageError("Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.");
  if (loadModel.includes("*") && loadModel.length > 1)
    throw new UsageError("Error: Wildcard model name '*' must be the ONLY startup model if specified at all.");
  if (options.allowGrpc) checkTls(options);
  const autoComplete = !options.disableAutoCompleteConfig && options.strictModelConfig !== true;
  return { ...options, container, autoComplete };
}

function containerOf(options: ServeFlagOptions): ServedContainer | null {
  const { sagemakerSocket, containerKind: kind, modelRepository } = options;
  if (kind !== "tritonserver" && modelRepository.length > 0)
    throw new UsageError(`--container-kind=${kind} serves what lies below --ml-root, and no --model-repository`);
  if (sagemakerSocket === null && !options.allowSagemaker) return null;
  return {
    listen:
      sagemakerSocket === null
        ? { host: options.httpAddress, port: options.sagemakerPort }
        : { socketPath: sagemakerSocket },
    mlRoot: options.mlRoot,
    fromEnvironment: modelRepository.length === 0,
    kind,
  };
}

function checkTls(options: ServeFlagOptions): void {
  const { grpcUseSsl, grpcUseSslMutual } = options;
  if (!grpcUseSsl && !grpcUseSslMutual) return;
  for (const [name, file, isNeeded] of [
    ["grpc-server-cert", options.grpcServerCert, true],
    ["grpc-server-key", options.grpcServerKey, true],
    ["grpc-root-cert", options.grpcRootCert, grpcUseSslMutual],
  ] as const)
    if (isNeeded && file === "") throw new UsageError(`gRPC over TLS needs --${name}`);
}
