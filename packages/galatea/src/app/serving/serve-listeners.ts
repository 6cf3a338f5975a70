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
  type GrpcTls,
  type Listener,
} from "@galatea/server/protocols";
import { findArchiveModel } from "@galatea/server/repository";
import type { ContainerFrontEnd } from "../container-environment.ts";
import type { GrpcOptions, ServeOptions } from "../options.ts";
import type { ServerMetrics } from "./server-metrics.ts";

export interface ListenerParts {
  readonly engine: EngineCore;
  /** What requests and answers in flight take. */
  readonly budget: ByteBudget;
  readonly options: ServeOptions;
  /** Null where the container contract is not served. */
  readonly frontEnd: ContainerFrontEnd | null;
  readonly log: Logger;
  readonly metrics: ServerMetrics;
  /** See ContainerRoutesOptions. */
  readonly unconfined: () => Readonly<Record<string, string>> | null;
}

/** Reads the certificates of listeners again. Rejects where one cannot be used: those that were read before stay in use. */
type ReloadCertificates = () => Promise<void>;

/** Opens what the options ask for and announces each in Triton's words. What was opened is added to `opened` at once. Null: without TLS. */
export async function openListeners(parts: ListenerParts, opened: Listener[]): Promise<ReloadCertificates | null> {
  const { budget, options, log } = parts;
  const limits: HttpLimits = { ...defaultHttpLimits, inputBytesMax: options.inputBytesMax };
  if (options.http !== null) {
    const { address, port, forwardedHeaders } = options.http;
    const listener = await openKserveHttp({
      engine: parts.engine,
      limits,
      budget,
      clock: systemClock,
      logger: log,
      address: { host: address, port },
      integerRange: "refuse",
      restrictions: options.httpRestrictions,
      forwardedHeaders,
    });
    opened.push(listener);
    log.info(`Started HTTPService at ${address}:${listener.port}`);
  }
  let reload: ReloadCertificates | null = null;
  if (options.grpc !== null) {
    const listener = await openGrpc(parts, options.grpc);
    opened.push(listener);
    log.info(`Started GRPCInferenceService at ${options.grpc.address}:${listener.port}`);
    const { tls } = options.grpc;
    if (tls !== null) reload = async () => listener.replaceTls(await readTls(tls));
  }
  if (options.metrics !== null) {
    const { address, port } = options.metrics;
    const listener = await openMetricsHttp({
      text: parts.metrics.text,
      logger: log,
      limits,
      budget,
      clock: systemClock,
      address: { host: address, port },
    });
    opened.push(listener);
    log.info(`Started Metrics Service at ${address}:${listener.port}`);
  }
  if (options.container !== null && parts.frontEnd !== null)
    opened.push(await openContract(parts, options.container, parts.frontEnd, limits));
  return reload;
}

async function openGrpc({ engine, budget, log }: ListenerParts, options: GrpcOptions) {
  const { address, port, tls, keepalive, compressionLevel, restrictions, forwardedHeaders } = options;
  return await openKserveGrpc({
    engine,
    address: { host: address, port },
    limits: defaultGrpcLimits,
    keepalive,
    compressionLevel,
    restrictions,
    forwardedHeaders,
    tls: tls === null ? null : await readTls(tls),
    budget,
    clock: systemClock,
    logger: log,
  });
}

async function readTls(files: NonNullable<GrpcOptions["tls"]>): Promise<GrpcTls> {
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
    certificate: await read(files.certificateFile),
    key: await read(files.keyFile),
    clientRoots: files.clientRootsFile === null ? null : await read(files.clientRootsFile),
  };
}

/** An archive of another kind of container than Triton's is the model, whatever lies in it. */
function archiveItself(directory: string) {
  return Promise.resolve({ repositoryDirectory: dirname(directory), modelDirectoryName: basename(directory) });
}

async function openContract(
  { engine, budget, log, unconfined }: ListenerParts,
  container: NonNullable<ServeOptions["container"]>,
  frontEnd: ContainerFrontEnd,
  limits: HttpLimits,
): Promise<Listener> {
  const { listen } = container;
  const address = "socketPath" in listen ? listen : { host: listen.address, port: listen.port };
  const listener = await openContainer({
    engine,
    clock: systemClock,
    limits: frontEnd.bodyBytesMax === null ? limits : { ...limits, bodyBytesMax: frontEnd.bodyBytesMax },
    budget,
    containerLimits: defaultContainerLimits,
    logger: log,
    address,
    integerRange: "refuse",
    pingMode: frontEnd.pingMode,
    defaultModelName: frontEnd.defaultModelName,
    language: frontEnd.language,
    mlRoot: container.mlRoot,
    chooseModelDirectory: frontEnd.language.kind === "triton" ? findArchiveModel : archiveItself,
    unconfined,
  });
  const where = "socketPath" in address ? address.socketPath : `${address.host}:${listener.port}`;
  log.info(`Started Sagemaker HTTPService at ${where}`);
  return listener;
}
