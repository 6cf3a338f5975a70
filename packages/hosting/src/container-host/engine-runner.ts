import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock, Logger } from "@galatea/base";
import type { HostedContainer, InstanceAddress } from "../instances/index.ts";
import type { ImageRunner, ImageSlot } from "../process-host/index.ts";
import {
  containerConfig,
  containerLabels,
  containerPort,
  type ContainerSurroundings,
  type EngineNetwork,
} from "./container-config.ts";
import { ContainerLog } from "./container-log.ts";
import { EngineContainer, type EngineState } from "./engine-container.ts";
import { EngineClient, EngineError } from "./engine-client.ts";
import { dockerdArguments, findDisabledIptables } from "./engine-firewall.ts";
import { pullImage } from "./image-pull.ts";

export interface EngineRunnerOptions {
  /** The engine's address, such as `unix:///var/run/docker.sock`. */
  readonly address: string;
  /** Identifier of this platform, because several platforms can use one engine: the directory of its instances. */
  readonly platform: string;
  /**
   * Name of the network that containers join. Null if the platform creates its own network, which is isolated from
   * other networks.
   */
  readonly network: string | null;
  readonly gpuCount: number;
  /** Path of Docker's `config.json`, which contains the credentials for registries. */
  readonly dockerConfigPath: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A container as the engine's list request returns it. */
interface ListedContainer {
  readonly Id: string;
  readonly State: string;
  readonly Labels: Readonly<Record<string, string>>;
}

interface Inspection {
  readonly State: EngineState;
  readonly NetworkSettings: {
    readonly Networks?: Readonly<Record<string, { readonly IPAddress?: string }>>;
    readonly Ports?: Readonly<Record<string, readonly { readonly HostPort: string }[] | null>>;
  };
}

interface NetworkInspection {
  readonly Internal: boolean;
  readonly IPAM?: { readonly Config?: readonly { readonly Gateway?: string }[] | null };
}

/**
 * Runs images through a container engine. Containers have labels, by which the next run of the platform finds them to
 * adopt or remove them.
 */
export class EngineRunner implements ImageRunner, AsyncDisposable {
  readonly #options: EngineRunnerOptions;
  readonly #client: EngineClient;
  readonly #cpuCount: number;
  readonly #ownNetwork: string;
  #creating: Promise<void> | null = null;

  private constructor(options: EngineRunnerOptions, client: EngineClient, cpuCount: number) {
    this.#options = options;
    this.#client = client;
    this.#cpuCount = cpuCount;
    this.#ownNetwork = `galatea-${createHash("sha256").update(options.platform).digest("hex").slice(0, 12)}`;
  }

  /**
   * Opens a connection to the engine. Rejects with EngineUnavailable if no engine responds at the address, and with an error that names the
   * setting if the engine does not isolate the containers of the platform's own network.
   */
  static async open(options: EngineRunnerOptions): Promise<EngineRunner> {
    const client = new EngineClient(options.address, options.clock);
    try {
      const { NCPU: cpuCount } = await client.call<{ readonly NCPU: number }>({ method: "GET", path: "/info" });
      if (options.network === null) await checkIsolation(options.address);
      return new EngineRunner(options, client, cpuCount);
    } catch (error) {
      await client[Symbol.asyncDispose]();
      throw error;
    }
  }

  async keepOnly(instanceIds: ReadonlySet<string>): Promise<void> {
    const left = await this.#containers([]);
    const others = left.filter(({ Labels }) => !instanceIds.has(Labels[containerLabels.instance] ?? ""));
    await Promise.all(others.map(({ Id }) => this.#remove(Id)));
  }

  async pull(image: string, signal: AbortSignal): Promise<void> {
    await pullImage(image, { client: this.#client, ...this.#options }, signal);
  }

  async adopt(slot: ImageSlot, _signal: AbortSignal): Promise<HostedContainer | null> {
    const [container = null, ...more] = await this.#ofSlot(slot);
    const isSame = container?.State === "running" && container.Labels[containerLabels.spec] === slot.specDigest;
    if (container !== null && isSame && more.length === 0) return await this.#opened(slot, container.Id, "continue");
    await this.#removeLeft(slot);
    return null;
  }

  async start(slot: ImageSlot, signal: AbortSignal): Promise<HostedContainer> {
    await this.#removeLeft(slot);
    const { platform, gpuCount } = this.#options;
    const network = await this.#network();
    const surroundings = { platform, network, gpuCount, cpuCount: this.#cpuCount };
    signal.throwIfAborted();
    const id = await this.#create(slot, surroundings);
    try {
      signal.throwIfAborted();
      await this.#client.call({ method: "POST", path: `/containers/${id}/start` });
      return await this.#opened(slot, id, "begin");
    } catch (error) {
      await this.#remove(id);
      if (!(error instanceof EngineError)) throw error;
      const text = `The container engine could not start the image ${slot.image}: ${error.message}`;
      throw new Error(text, { cause: error });
    }
  }

  async #create(slot: ImageSlot, surroundings: ContainerSurroundings): Promise<string> {
    try {
      const { Id } = await this.#client.call<{ readonly Id: string }>({
        method: "POST",
        path: `/containers/create?name=galatea-${slot.id}`,
        body: containerConfig(slot, surroundings),
      });
      return Id;
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      const text = `The container engine could not create a container of the image ${slot.image}: ${error.message}`;
      throw new Error(text, { cause: error });
    }
  }

  async #opened(slot: ImageSlot, id: string, how: "begin" | "continue"): Promise<EngineContainer> {
    const { clock, logger } = this.#options;
    const inspection = await this.#client.call<Inspection>({ method: "GET", path: `/containers/${id}/json` });
    const { directory, spec } = slot;
    const log = await ContainerLog[how]({
      client: this.#client,
      containerId: id,
      directory,
      onLine: spec.output,
      clock,
    });
    const address = addressOf(inspection, directory);
    return new EngineContainer({ client: this.#client, id, address, slot, log, clock, logger });
  }

  async #removeLeft(slot: ImageSlot): Promise<void> {
    await Promise.all((await this.#ofSlot(slot)).map(({ Id }) => this.#remove(Id)));
  }

  async #ofSlot({ id }: ImageSlot): Promise<readonly ListedContainer[]> {
    return await this.#containers([`${containerLabels.slot}=${id}`]);
  }

  /** Returns the platform's containers with these labels, including containers that have exited. */
  async #containers(labels: readonly string[]): Promise<readonly ListedContainer[]> {
    const label = [`${containerLabels.platform}=${this.#options.platform}`, ...labels];
    const filters = encodeURIComponent(JSON.stringify({ label }));
    return await this.#client.call({ method: "GET", path: `/containers/json?all=true&filters=${filters}` });
  }

  async #remove(id: string): Promise<void> {
    await ignoringAbsent(this.#client.call({ method: "DELETE", path: `/containers/${id}?force=true&v=true` }));
  }

  /** Returns the network that containers join. Creates the platform's own network if it is missing. */
  async #network(): Promise<EngineNetwork> {
    const { network } = this.#options;
    const name = network ?? this.#ownNetwork;
    if (network === null) {
      this.#creating ??= this.#createNetwork().finally(() => (this.#creating = null));
      await this.#creating;
    }
    const inspected = await this.#client.call<NetworkInspection>({ method: "GET", path: `/networks/${name}` });
    const gateway = inspected.IPAM?.Config?.find((each) => each.Gateway !== undefined)?.Gateway ?? null;
    return { name, gateway, isInternal: inspected.Internal };
  }

  async #createNetwork(): Promise<void> {
    const name = this.#ownNetwork;
    const found = await this.#client.call<readonly { readonly Name: string }[]>({ method: "GET", path: "/networks" });
    if (found.some(({ Name }) => Name === name)) return;
    // Containers in this network can reach only this machine. They cannot reach each other, other networks, or a
    // cloud's metadata service.
    const Options = { "com.docker.network.bridge.enable_icc": "false" };
    const body = { Name: name, Driver: "bridge", Internal: true, Options };
    await this.#client.call({ method: "POST", path: "/networks/create", body });
  }

  /** Removes the platform's own network, unless detached containers still use it, and closes the client. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await ignoringAbsent(this.#client.call({ method: "DELETE", path: `/networks/${this.#ownNetwork}` }));
    } catch (error) {
      const isInUse = error instanceof EngineError && networkInUseStatuses.has(error.status);
      if (!isInUse) this.#options.logger.warning("a network is left in the container engine", { error: String(error) });
    }
    await this.#client[Symbol.asyncDispose]();
  }
}

/**
 * Rejects if the Docker engine creates no iptables rules: containers in the platform's own network could then connect to each other, and Docker
 * reports nothing.
 */
async function checkIsolation(address: string): Promise<void> {
  const readConfig = (path: string) => readFile(path, "utf8").catch(() => null);
  const setting = await findDisabledIptables(address, await dockerdArguments(), readConfig);
  if (setting === null) return;
  throw new Error(
    `the container engine at ${address} does not isolate containers from each other, because of ${setting}: ` +
      "remove this setting, or name a network that your own firewall isolates with --container-network",
  );
}

/** Statuses of a request to remove a network that is in use: 403 from Docker, 409 from Podman. */
const networkInUseStatuses: ReadonlySet<number> = new Set([403, 409]);

async function ignoringAbsent(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof EngineError && error.status === 404)) throw error;
  }
}

/**
 * Returns the address of a container: a published port of this machine, or the container's own IP address if no port is
 * published.
 */
function addressOf({ NetworkSettings: { Networks = {}, Ports = {} } }: Inspection, directory: string): InstanceAddress {
  const published = Ports[`${containerPort}/tcp`]?.[0]?.HostPort;
  if (published !== undefined) return { kind: "tcp", host: "127.0.0.1", port: Number(published) };
  const host = Object.values(Networks)[0]?.IPAddress ?? "";
  if (host !== "") return { kind: "tcp", host, port: containerPort };
  // A container that has exited has no address. Connections to this missing socket fail, so that callers see that the
  // container is gone.
  return { kind: "socket", path: join(directory, "ended") };
}
