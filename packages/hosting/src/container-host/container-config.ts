import { join } from "node:path";
import type { ImageSlot } from "../process-host/index.ts";

/** The port at which SageMaker calls containers. */
export const containerPort = 8080;

/** Labels of containers. The next run of the platform finds the containers by these labels. */
export const containerLabels = {
  platform: "galatea.platform",
  instance: "galatea.instance",
  slot: "galatea.slot",
  spec: "galatea.spec",
  title: "galatea.title",
} as const;

/** A network of the engine that containers join. */
export interface EngineNetwork {
  readonly name: string;
  /** Address of this machine in the network; null if the engine reports none. */
  readonly gateway: string | null;
  /**
   * True if containers in the network cannot reach other networks. The platform then calls a container at its own
   * address. Otherwise, it calls a port that the engine publishes.
   */
  readonly isInternal: boolean;
}

export interface ContainerSurroundings {
  /** Identifier of this platform. Several platforms can use one engine. */
  readonly platform: string;
  readonly network: EngineNetwork;
  /** Number of CPUs of the engine's machine. The engine rejects a CPU limit above it. */
  readonly cpuCount: number;
  /** Number of GPUs of the engine's machine. */
  readonly gpuCount: number;
}

/**
 * Docker's default capabilities, except those that few programs need: NET_RAW, MKNOD, SYS_CHROOT, AUDIT_WRITE, SETPCAP,
 * SETFCAP, FSETID.
 */
const capabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"];
const pidsMax = 8192;
const logConfig = { Type: "json-file", Config: { "max-size": "16m", "max-file": "2" } };

/** Returns the body of the engine's request that creates a container, with SageMaker's command, port, directories and variables. */
export function containerConfig(slot: ImageSlot, { platform, network, cpuCount, gpuCount }: ContainerSurroundings) {
  const { id, instanceId, image, spec, specDigest, budget, mlRoot } = slot;
  const port = `${containerPort}/tcp`;
  const directory = spec.models.kind === "one" ? "model" : "models";
  const gpus = Math.min(budget.acceleratorCount ?? 0, gpuCount);
  return {
    Image: image,
    Cmd: ["serve"],
    Env: Object.entries(variablesOf(slot, network)).map(([name, value]) => `${name}=${value}`),
    Labels: {
      [containerLabels.platform]: platform,
      [containerLabels.instance]: instanceId,
      [containerLabels.slot]: id,
      [containerLabels.spec]: specDigest,
      [containerLabels.title]: spec.title,
    },
    ExposedPorts: { [port]: {} },
    HostConfig: {
      Mounts: [{ Type: "bind", Source: join(mlRoot, directory), Target: `/opt/ml/${directory}`, ReadOnly: true }],
      Memory: spec.modelMemoryBytes,
      // An equal limit of memory and swap together means no swap.
      MemorySwap: spec.modelMemoryBytes,
      NanoCpus: Math.floor(Math.min(budget.vcpuCount, cpuCount) * 1e9),
      PidsLimit: pidsMax,
      CapDrop: ["ALL"],
      CapAdd: capabilities,
      SecurityOpt: ["no-new-privileges"],
      NetworkMode: network.name,
      ...(network.isInternal ? {} : { PortBindings: { [port]: [{ HostIp: "127.0.0.1", HostPort: "" }] } }),
      ...(gpus === 0 ? {} : { DeviceRequests: [{ Count: gpus, Capabilities: [["gpu"]] }] }),
      RestartPolicy: { Name: "no" },
      LogConfig: logConfig,
    },
  };
}

const loopback = /^(https?:\/\/)(?:127\.0\.0\.1|localhost|\[::1\])(?=[:/]|$)/;

/**
 * Returns the environment variables of a container. A loopback address in AWS_ENDPOINT_URL is replaced by the network's
 * gateway, because in the container a loopback address refers to the container itself.
 */
function variablesOf({ spec }: ImageSlot, { gateway }: EngineNetwork): Readonly<Record<string, string>> {
  const { environment } = spec;
  const url = environment["AWS_ENDPOINT_URL"];
  const reached = url === undefined || gateway === null ? url : url.replace(loopback, `$1${gateway}`);
  return {
    ...environment,
    ...(reached === undefined ? {} : { AWS_ENDPOINT_URL: reached }),
    SAGEMAKER_BIND_TO_PORT: String(containerPort),
  };
}
