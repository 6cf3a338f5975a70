import type { RequestedComponentSpec, ProductionVariant } from "../src/index.ts";
import { owner } from "./hosting-fixture.ts";
import type { TrafficFixture } from "./traffic-fixture.ts";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

const gibi = 2 ** 30;

/**
 * Returns the spec of a component. An instance of ml.m5.large has 2 cores and 8 GiB, which limits the copies per
 * instance.
 */
export function spec(name: string, memoryGib = 1, more: Partial<RequestedComponentSpec> = {}): RequestedComponentSpec {
  const broken = name === "broken" ? { BREAKS: "1" } : {};
  return {
    modelName: null,
    container: { Image: "sagemaker-tritonserver:test", Environment: { NAME: name, ...broken } },
    claim: { cpuCores: 0.5, acceleratorCount: 0, memoryBytes: memoryGib * gibi },
    memoryBytesMax: null,
    strategy: null,
    startSeconds: null,
    downloadSeconds: null,
    request: {},
    ...more,
  };
}

/** Deploys an endpoint with one variant, `v`, whose instances are shared by inference components. */
export async function deployShared(
  bench: TrafficFixture,
  name: string,
  more: Partial<ProductionVariant> = {},
): Promise<void> {
  const variant = {
    VariantName: "v",
    ModelName: "",
    InitialInstanceCount: 1,
    InstanceType: "ml.m5.large",
    InitialVariantWeight: 1,
  };
  await bench.hosting.catalog.createConfig({
    name,
    owner,
    request: {},
    tags: [],
    variants: [{ ...variant, ...more }],
  });
  await bench.hosting.endpoints.create({ name, configName: name, owner, tags: [], deploymentConfig: null });
  await bench.settled(name);
}

export async function componentSettled(bench: TrafficFixture, name: string): Promise<void> {
  await bench.hosting.components.waitUntilStable(name, {
    waitMsMax: testTimeoutMs,
    signal: new AbortController().signal,
  });
}

type Update = Parameters<TrafficFixture["hosting"]["components"]["update"]>[0];

/** Creates an inference component. Resolves when it is recorded. */
export async function createComponent(
  bench: TrafficFixture,
  endpointName: string,
  name: string,
  requested: RequestedComponentSpec,
  copyCount = 1,
  tags: readonly { readonly Key: string; readonly Value: string }[] = [],
): Promise<void> {
  const request = { name, endpointName, variantName: null, spec: requested, copyCount, owner, tags };
  await bench.hosting.components.create(request);
}

export async function updateComponent(bench: TrafficFixture, name: string, more: Partial<Update>): Promise<void> {
  await bench.hosting.components.update({ name, owner, spec: null, copyCount: null, rolling: null, ...more });
}
