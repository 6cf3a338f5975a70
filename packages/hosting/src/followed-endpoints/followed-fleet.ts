import { TaskGroup, type Clock, type Logger } from "@galatea/base";
import type { Owner } from "../definitions/index.ts";
import {
  InstanceRouting,
  ModelRouter,
  namedContainers,
  RoutedInstance,
  type PlacementKey,
  type VariantGroup,
} from "../endpoints/index.ts";
import { ContainerConnectionLost, type AgentInstance, type AgentInstanceSpec } from "../instance-agent/index.ts";
import {
  checkTargets,
  type InvocationLimits,
  type InvocationReply,
  type InvocationRequest,
} from "../invocations/index.ts";
import { VariantMetrics, type OpenSeries } from "../series/index.ts";
import type { InstanceOnAgent } from "./listed-instances.ts";

export interface FollowedFleetOptions {
  readonly openSeries: OpenSeries;
  /** Returns the URL of a log group for error messages. */
  readonly logsLink: (group: string) => string;
  readonly limits: InvocationLimits;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface FollowedFleetIdentity {
  readonly endpointName: string;
  readonly configName: string;
  readonly owner: Owner;
  readonly placementKey: PlacementKey;
}

/** An instance that another process has started. */
class FollowedInstance extends RoutedInstance {
  get agentInstance(): AgentInstance {
    return this.instance;
  }
}

/** The instances of one variant, which another process starts and stops. Routes requests to them. */
export class FollowedFleet implements AsyncDisposable {
  readonly #identity: FollowedFleetIdentity;
  readonly #options: FollowedFleetOptions;
  readonly #plan: VariantGroup["plan"];
  readonly #members: FollowedInstance[] = [];
  readonly #tasks: TaskGroup;
  readonly #metrics: VariantMetrics;
  readonly #routing: InstanceRouting<FollowedInstance>;

  constructor({ plan }: Pick<VariantGroup, "plan">, identity: FollowedFleetIdentity, options: FollowedFleetOptions) {
    const { limits, random, clock, logger } = options;
    const { endpointName, configName, placementKey } = identity;
    this.#plan = plan;
    this.#identity = identity;
    this.#options = options;
    this.#tasks = new TaskGroup((error) => logger.error("following an instance failed", { error: String(error) }));
    const containers = namedContainers(plan);
    this.#metrics = new VariantMetrics(options.openSeries, {
      endpoint: endpointName,
      variant: plan.variant.VariantName,
      config: configName,
      multiModel: containers.some(({ definition }) => definition.Mode === "MultiModel"),
      containers: containers.filter(({ isOnly }) => !isOnly).map(({ name }) => name),
    });
    this.#routing = new InstanceRouting({
      endpointName,
      plan,
      members: this.#members,
      moving: new Set(),
      router: new ModelRouter({
        tasks: this.#tasks,
        key: placementKey,
        coldMs: limits.modelCopyColdMs,
        adoptionMsMax: limits.restartWaitMsMax,
        clock,
        logger,
      }),
      passesOn: true,
      metrics: this.#metrics,
      random,
      limits,
      clock,
      logger,
    });
  }

  get variantName(): string {
    return this.#plan.variant.VariantName;
  }

  get inServiceCount(): number {
    return this.#members.filter((member) => member.isInService).length;
  }

  get canServe(): boolean {
    return this.#members.some((member) => member.isInService && !member.invocations.isFull);
  }

  /** Sets the instances to which requests are routed. Requests in flight on other instances continue. */
  setInstances(listed: readonly InstanceOnAgent[]): void {
    const ids = new Set(listed.map(({ spec }) => spec.id));
    for (const gone of this.#members.filter(({ id }) => !ids.has(id))) {
      this.#members.splice(this.#members.indexOf(gone), 1);
      this.#tasks.run(async () => void (await gone.agentInstance.shutDown()));
    }
    for (const each of listed) if (!this.#members.some(({ id }) => id === each.spec.id)) this.#add(each);
    this.#members.sort((one, other) => one.ordinal - other.ordinal);
  }

  /** Rejects with RequestNotSent if no instance has received the request, and with AwsError. */
  async invoke(request: InvocationRequest, peerCount: number): Promise<InvocationReply> {
    checkTargets(request, this.#plan.model, this.#identity.endpointName);
    return (await this.#routing.invoke(request, peerCount, null)).reply;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.setInstances([]);
    await this.#tasks[Symbol.asyncDispose]();
  }

  #add({ agent, spec, ordinal }: InstanceOnAgent): void {
    const { limits, clock } = this.#options;
    const member = new FollowedInstance({
      id: spec.id,
      ordinal,
      open: (onEvent) => agent.instance(spec, onEvent),
      containers: this.#containersOf(spec),
      executionMode: this.#plan.model.executionMode,
      variantName: this.variantName,
      metrics: this.#metrics,
      limits,
      clock,
    });
    this.#members.push(member);
    this.#tasks.run(async () => {
      // An instance of an agent that does not respond is followed as soon as the agent responds.
      await member.agentInstance.attach().catch((error: unknown) => {
        if (!(error instanceof ContainerConnectionLost)) throw error;
      });
    });
  }

  #containersOf({ id }: AgentInstanceSpec) {
    const { endpointName, owner } = this.#identity;
    const { region, accountId } = owner;
    const logGroup = `/aws/sagemaker/Endpoints/${endpointName}`;
    return namedContainers(this.#plan).map(({ name, isOnly, definition }) => {
      const stream = `${this.variantName}/${id}${isOnly ? "" : `/${name}`}`;
      const logStreamArn = `arn:aws:logs:${region}:${accountId}:log-group:${logGroup}:log-stream:${stream}`;
      const { logsLink } = this.#options;
      const source = { logGroup, region, accountId, logsLink, containerName: name, logStreamArn };
      return { source, modelDataUrl: definition.ModelDataUrl ?? "" };
    });
  }
}
