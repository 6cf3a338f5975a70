import { systemClock, type Logger } from "../base/index.ts";
import type { EngineCore } from "../engine/index.ts";
import {
  defaultContainerLimits,
  defaultHttpLimits,
  openContainer,
  openKserveHttp,
  openMetricsHttp,
  type HttpLimits,
  type HttpListener,
} from "../protocols/index.ts";
import { findArchiveModel } from "../repository/index.ts";
import type { ContainerFrontEnd, ContainerPlan } from "./container-environment.ts";
import type { ServeOptions } from "./options.ts";
import type { ServerMetrics } from "./server-metrics.ts";

export interface ListenerParts {
  readonly engine: EngineCore;
  readonly options: ServeOptions;
  readonly plan: ContainerPlan | null;
  /** Null where the container contract is not served. */
  readonly frontEnd: ContainerFrontEnd | null;
  readonly log: Logger;
  readonly metrics: ServerMetrics;
}

/** Opens what the options ask for and announces each in the original's words. What was opened is added to `opened` at once. */
export async function openListeners(parts: ListenerParts, opened: HttpListener[]): Promise<void> {
  const { options, plan, log } = parts;
  const limits: HttpLimits = { ...defaultHttpLimits, inputBytesMax: options.inputBytesMax };
  // In a container started from its environment only the contract is served, as the original's entry point has it.
  if (options.http !== null && plan === null) {
    const { address, port } = options.http;
    const listener = await openKserveHttp({
      engine: parts.engine,
      limits,
      logger: log,
      address: { host: address, port },
      integerRange: "refuse",
      restrictions: new Map(),
    });
    opened.push(listener);
    log.info(`Started HTTPService at ${address}:${listener.port}`);
  }
  const metricsAt = plan === null ? options.metrics : metricsOfPlan(options, plan);
  if (metricsAt !== null) {
    const { address, port } = metricsAt;
    const listener = await openMetricsHttp({
      text: () => parts.metrics.registry.print(),
      logger: log,
      limits,
      address: { host: address, port },
    });
    opened.push(listener);
    log.info(`Started Metrics Service at ${address}:${listener.port}`);
  }
  if (options.container !== null && parts.frontEnd !== null)
    opened.push(await openContract(parts, options.container, parts.frontEnd, limits));
}

async function openContract(
  { engine, plan, log }: ListenerParts,
  container: NonNullable<ServeOptions["container"]>,
  frontEnd: ContainerFrontEnd,
  limits: HttpLimits,
): Promise<HttpListener> {
  const { listen } = container;
  const address = "socketPath" in listen ? listen : { host: listen.address, port: plan?.bindPort ?? listen.port };
  const listener = await openContainer({
    engine,
    clock: systemClock,
    limits,
    containerLimits: defaultContainerLimits,
    logger: log,
    address,
    integerRange: "refuse",
    pingMode: frontEnd.pingMode,
    defaultModelName: frontEnd.defaultModelName,
    mlRoot: container.mlRoot,
    chooseModelDirectory: findArchiveModel,
  });
  const where = "socketPath" in address ? address.socketPath : `${address.host}:${listener.port}`;
  log.info(`Started Sagemaker HTTPService at ${where}`);
  return listener;
}

function metricsOfPlan(options: ServeOptions, plan: ContainerPlan): ServeOptions["metrics"] {
  if (plan.metricsPort === null || options.metrics === null) return null;
  return { ...options.metrics, port: plan.metricsPort };
}
