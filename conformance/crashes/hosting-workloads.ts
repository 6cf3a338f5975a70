import assert from "node:assert/strict";
import {
  CreateEndpointCommand,
  CreateInferenceComponentCommand,
  DeleteEndpointCommand,
  DeleteInferenceComponentCommand,
  DescribeEndpointCommand,
  DescribeInferenceComponentCommand,
  UpdateEndpointCommand,
  UpdateEndpointWeightsAndCapacitiesCommand,
  UpdateInferenceComponentRuntimeConfigCommand,
  type DeploymentConfig,
} from "@aws-sdk/client-sagemaker";
import { InvokeEndpointCommand } from "@aws-sdk/client-sagemaker-runtime";
import { orNull, pause, type Clients, type Workload } from "./clients.ts";
import { responseOf, AcknowledgedValue } from "./acknowledged-value.ts";
import { requestBody } from "./model-archive.ts";

const lookMs = 20;

export async function invokeEndpoint({ runtime }: Clients, endpoint: string, more: object = {}): Promise<void> {
  const input = { EndpointName: endpoint, Body: requestBody, ContentType: "application/json", ...more };
  const { Body: body } = await responseOf(runtime.send(new InvokeEndpointCommand(input)));
  assert.match(Buffer.from(body ?? []).toString(), /"data":\[2\.0\]/);
}

interface EndpointSnapshot {
  readonly status: string;
  readonly config: string;
  readonly instanceCount: number;
}

/** Resolves when the endpoint is in a stable state; with null if it does not exist. */
export async function stableEndpoint({ sagemaker }: Clients, name: string): Promise<EndpointSnapshot | null> {
  for (;;) {
    const response = sagemaker.send(new DescribeEndpointCommand({ EndpointName: name }));
    const found = await responseOf(orNull(response));
    if (found === null) return null;
    const { EndpointStatus: status = "", EndpointConfigName: config = "", ProductionVariants: [variant] = [] } = found;
    if (["InService", "OutOfService", "Failed", "UpdateRollbackFailed"].includes(status)) {
      return { status, config, instanceCount: variant?.DesiredInstanceCount ?? 0 };
    }
    await pause(lookMs);
  }
}

type EndpointTransition = readonly [to: EndpointSnapshot | null, ask: (clients: Clients) => Promise<unknown>];

/** Creates, updates, scales and deletes an endpoint repeatedly. */
export class EndpointWorkload implements Workload {
  readonly #name: string;
  readonly #known: AcknowledgedValue<EndpointSnapshot | null>;
  readonly #transitions: readonly EndpointTransition[];
  #at = 0;

  /** Takes the names of two configurations with the same number of instances, and the way of an update from the first to the second. */
  constructor(
    name: string,
    [one, two]: readonly [string, string],
    { count = 1, ...update }: { readonly count?: number; readonly DeploymentConfig?: DeploymentConfig } = {},
  ) {
    this.#name = name;
    this.#known = new AcknowledgedValue<EndpointSnapshot | null>(`the endpoint ${name}`, null);
    const named = { EndpointName: name };
    const is = (config: string, instanceCount: number, status = "InService") => ({ status, config, instanceCount });
    const switched = (verb: string) => async (clients: Clients) => {
      const { status } = await fetch(`${clients.url}/galatea/endpoints/${name}/${verb}`, { method: "POST" }).catch(
        () => ({ status: 0 }),
      );
      if (status !== 200) throw Object.assign(new Error(`${verb}: ${status}`), { $metadata: asMetadata(status) });
    };
    const resized = [{ VariantName: "v", DesiredInstanceCount: count + 1 }];
    this.#transitions = [
      [is(one, count), ({ sagemaker: s }) => s.send(new CreateEndpointCommand({ ...named, EndpointConfigName: one }))],
      [
        is(two, count),
        ({ sagemaker: s }) => s.send(new UpdateEndpointCommand({ ...named, ...update, EndpointConfigName: two })),
      ],
      [is(two, count, "OutOfService"), switched("stop")],
      [is(two, count), switched("start")],
      [
        is(two, count + 1),
        ({ sagemaker: s }) =>
          s.send(new UpdateEndpointWeightsAndCapacitiesCommand({ ...named, DesiredWeightsAndCapacities: resized })),
      ],
      [null, ({ sagemaker: s }) => s.send(new DeleteEndpointCommand(named))],
    ];
  }

  begin(clients: Clients): Promise<void> {
    return this.check(clients);
  }

  async step(clients: Clients): Promise<void> {
    await this.check(clients);
    // The endpoint's state determines the next operation, also after a kill between an operation and its response.
    const at = this.#transitions.findIndex(([to]) => JSON.stringify(to) === JSON.stringify(this.#known.value));
    const isAgain = at !== -1 && JSON.stringify(this.#transitions[this.#at]?.[0]) === JSON.stringify(this.#known.value);
    this.#at = ((isAgain ? this.#at : at) + 1) % this.#transitions.length;
    const transition = this.#transitions[this.#at];
    assert.ok(transition !== undefined);
    const [to, perform] = transition;
    await this.#known.write(to, () => perform(clients));
  }

  async check(clients: Clients): Promise<void> {
    const is = await stableEndpoint(clients, this.#name);
    this.#known.observe(is);
    if (is?.status === "InService") await invokeEndpoint(clients, this.#name);
  }
}

function asMetadata(status: number) {
  return status === 0 ? {} : { httpStatusCode: status };
}

/** Creates an inference component, changes its number of copies, also to zero, and deletes it, repeatedly. */
export class ComponentWorkload implements Workload {
  readonly #endpoint: string;
  readonly #model: string;
  readonly #name = "component";
  /** The number of its copies; null if the component does not exist. */
  readonly #known = new AcknowledgedValue<number | null>("the inference component", null);

  constructor(endpoint: string, model: string) {
    this.#endpoint = endpoint;
    this.#model = model;
  }

  begin(clients: Clients): Promise<void> {
    return this.check(clients);
  }

  async step(clients: Clients): Promise<void> {
    await this.check(clients);
    const { sagemaker } = clients;
    const named = { InferenceComponentName: this.#name };
    const scaled = (CopyCount: number) =>
      this.#known.write(CopyCount, () =>
        sagemaker.send(
          new UpdateInferenceComponentRuntimeConfigCommand({ ...named, DesiredRuntimeConfig: { CopyCount } }),
        ),
      );
    const created = {
      ...named,
      EndpointName: this.#endpoint,
      VariantName: "v",
      RuntimeConfig: { CopyCount: 1 },
      Specification: {
        ModelName: this.#model,
        ComputeResourceRequirements: { NumberOfCpuCoresRequired: 0.25, MinMemoryRequiredInMb: 512 },
      },
    };
    switch (this.#known.value) {
      case null:
        return await this.#known.write(1, () => sagemaker.send(new CreateInferenceComponentCommand(created)));
      case 1:
        return await scaled(2);
      case 2:
        return await scaled(0);
      default:
        return await this.#known.write(null, () => sagemaker.send(new DeleteInferenceComponentCommand(named)));
    }
  }

  async check(clients: Clients): Promise<void> {
    for (;;) {
      const response = clients.sagemaker.send(
        new DescribeInferenceComponentCommand({ InferenceComponentName: this.#name }),
      );
      const found = await responseOf(orNull(response));
      if (found === null) return this.#known.observe(null);
      const { InferenceComponentStatus: status, FailureReason: reason, RuntimeConfig: config } = found;
      if (status === "InService" || status === "Failed") {
        assert.equal(status, "InService", reason);
        const copyCount = config?.DesiredCopyCount ?? 0;
        this.#known.observe(copyCount);
        if (copyCount > 0) await invokeEndpoint(clients, this.#endpoint, { InferenceComponentName: this.#name });
        return;
      }
      await pause(lookMs);
    }
  }
}

/** Invokes the models of a multi-model endpoint. */
export class MultiModelWorkload implements Workload {
  readonly #endpoint: string;
  readonly #models: readonly string[];

  constructor(endpoint: string, models: readonly string[]) {
    this.#endpoint = endpoint;
    this.#models = models;
  }

  begin(clients: Clients): Promise<void> {
    return this.check(clients);
  }

  async step(clients: Clients): Promise<void> {
    await this.check(clients);
    await pause(lookMs);
  }

  async check(clients: Clients): Promise<void> {
    for (const TargetModel of this.#models) await invokeEndpoint(clients, this.#endpoint, { TargetModel });
  }
}
