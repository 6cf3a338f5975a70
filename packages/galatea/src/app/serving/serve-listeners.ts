import { readFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { InferenceError, systemClock, type ByteBudget, type Logger } from "@galatea/base";
import type { EngineCore } from "@galatea/server/engine";
import {
  defaultContainerLimits,
  defaultGrpcLimits,
  defaultHttpLimits,
  openContainer,
  openKserveGrpc,
  openKserveHttp,
  openMetricsHttp,
  type HttpLimits,
  type KeepaliveOptions,
  type GrpcTls,
  type Listener,
} from "@galatea/server/protocols";
import { findArchiveModel } from "@galatea/server/repository";
import type { ContainerFrontEnd } from "../container-environment.ts";
import type { ServedContainer, ServeOptions } from "../../options/index.ts";
import type { ServerMetrics } from "./server-metrics.ts";

export interface ListenerDependencies {
  readonly engine: EngineCore;
  /** Memory budget for requests and responses in flight. */
  readonly budget: ByteBudget;
  readonly options: ServeOptions;
  /** The settings of the container contract; null if it is not served. */
  readonly frontEnd: ContainerFrontEnd | null;
  readonly log: Logger;
  readonly metrics: ServerMetrics;
  /** Returns the missing kinds of isolation, which /ping reports; null if there are none. */
  readonly unconfined: () => Readonly<Record<string, string>> | null;
  /** Called at each ping of the container contract. */
  readonly onPing: () => void;
}

/**
 * Reads the certificates of listeners again. Rejects if one cannot be used; the listeners then keep the previous
 * certificates.
 */
type ReloadCertificates = () => Promise<void>;

/**
 * Opens the requested listeners, and logs each with Triton's text. Adds each listener to `opened` as soon as it is
 * open, so that the caller can close it after a failure. Resolves with the function that reloads certificates; null
 * without TLS.
 */
export async function openListeners(
  dependencies: ListenerDependencies,
  opened: Listener[],
): Promise<ReloadCertificates | null> {
  const { budget, options, log } = dependencies;
  const limits: HttpLimits = { ...defaultHttpLimits, inputBytesMax: options.httpMaxInputSize };
  if (options.allowHttp) {
    const { httpAddress: host, httpPort: port } = options;
    const listener = await openKserveHttp({
      engine: dependencies.engine,
      limits,
      budget,
      clock: systemClock,
      logger: log,
      address: { host, port },
      restrictions: options.httpRestrictedApi,
      forwardedHeaders: options.httpHeaderForwardPattern,
    });
    opened.push(listener);
    log.info(`Started HTTPService at ${host}:${listener.port}`);
  }
  let reload: ReloadCertificates | null = null;
  if (options.allowGrpc) {
    const listener = await openGrpc(dependencies);
    opened.push(listener);
    log.info(`Started GRPCInferenceService at ${options.grpcAddress}:${listener.port}`);
    if (usesTls(options)) reload = async () => listener.replaceTls(await readTls(options));
  }
  if (options.allowMetrics) {
    const host = options.metricsAddress ?? options.httpAddress;
    const listener = await openMetricsHttp({
      text: dependencies.metrics.text,
      logger: log,
      limits,
      budget,
      clock: systemClock,
      address: { host, port: options.metricsPort },
    });
    opened.push(listener);
    log.info(`Started Metrics Service at ${host}:${listener.port}`);
  }
  if (options.container !== null && dependencies.frontEnd !== null)
    opened.push(await openContract(dependencies, options.container, dependencies.frontEnd, limits));
  return reload;
}

async function openGrpc({ engine, budget, log, options }: ListenerDependencies) {
  return await openKserveGrpc({
    engine,
    address: { host: options.grpcAddress, port: options.grpcPort },
    limits: defaultGrpcLimits,
    keepalive: keepaliveOf(options),
    compressionLevel: options.grpcInferResponseCompressionLevel,
    restrictions: options.grpcRestrictedProtocol,
    forwardedHeaders: options.grpcHeaderForwardPattern,
    tls: usesTls(options) ? await readTls(options) : null,
    budget,
    clock: systemClock,
    logger: log,
  });
}

const timerMsMax = 2 ** 31 - 1;

function keepaliveOf(options: ServeOptions): KeepaliveOptions {
  const timer = (ms: number) => Math.min(ms, timerMsMax);
  const timerOrNull = (ms: number) => (ms === 0 ? null : timer(ms));
  return {
    timeMs: timer(options.grpcKeepaliveTime),
    timeoutMs: timer(options.grpcKeepaliveTimeout),
    permitWithoutCalls: options.grpcKeepalivePermitWithoutCalls,
    receivedPingIntervalMinMs: timer(options.grpcHttp2MinRecvPingIntervalWithoutData),
    pingStrikesMax: options.grpcHttp2MaxPingStrikes,
    connectionAgeMaxMs: timerOrNull(options.grpcMaxConnectionAge),
    connectionAgeGraceMs: timerOrNull(options.grpcMaxConnectionAgeGrace),
  };
}

const usesTls = ({ grpcUseSsl, grpcUseSslMutual }: ServeOptions) => grpcUseSsl || grpcUseSslMutual;

async function readTls(options: ServeOptions): Promise<GrpcTls> {
  const read = async (file: string) => {
    try {
      return await readFile(file);
    } catch (error) {
      throw new InferenceError(
        "INVALID_ARG",
        `failed to read '${file}' for gRPC over TLS: ${(error as Error).message}`,
      );
    }
  };
  return {
    certificate: await read(options.grpcServerCert),
    key: await read(options.grpcServerKey),
    clientRoots: options.grpcUseSslMutual ? await read(options.grpcRootCert) : null,
  };
}

/** Returns the archive's directory as the model, for containers of other kinds than Triton's. */
function archiveItself(directory: string) {
  return Promise.resolve({ repositoryDirectory: dirname(directory), modelDirectoryName: basename(directory) });
}

async function openContract(
  { engine, budget, log, unconfined, onPing }: ListenerDependencies,
  { listen: address, mlRoot }: ServedContainer,
  frontEnd: ContainerFrontEnd,
  limits: HttpLimits,
): Promise<Listener> {
  const listener = await openContainer({
    engine,
    clock: systemClock,
    limits: frontEnd.bodyBytesMax === null ? limits : { ...limits, bodyBytesMax: frontEnd.bodyBytesMax },
    budget,
    containerLimits: defaultContainerLimits,
    logger: log,
    address,
    pingMode: frontEnd.pingMode,
    defaultModelName: frontEnd.defaultModelName,
    language: frontEnd.language,
    mlRoot,
    chooseModelDirectory: frontEnd.language.kind === "triton" ? findArchiveModel : archiveItself,
    unconfined,
    onPing,
  });
  const where = "socketPath" in address ? address.socketPath : `${address.host}:${listener.port}`;
  log.info(`Started Sagemaker HTTPService at ${where}`);
  return listener;
}
