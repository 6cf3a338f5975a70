import { AwsError } from "@galatea/base";
import { failureReason, groupKey, type EndpointDescription, type Hosting, type Owner } from "../index.ts";
import type { ScalableResources } from "../scaling/index.ts";

/** Maximum wait for a scaling activity, in milliseconds: longer than any endpoint takes to start. */
const stableMsMax = 3_600_000;

/** The scalable dimension of serverless variants: their provisioned concurrency. */
const provisioned = "sagemaker:variant:DesiredProvisionedConcurrency";

/**
 * Returns the variants of endpoints as scalable resources of Application Auto Scaling. The capacity of a variant is its
 * instance count, or its provisioned concurrency if it is serverless.
 */
export function scalableVariants(hosting: Hosting, owner: Owner): ScalableResources {
  const described = async (endpoint: string): Promise<EndpointDescription | null> => {
    try {
      return await hosting.endpoints.describe(endpoint, owner);
    } catch (error) {
      if (error instanceof AwsError) return null;
      throw error;
    }
  };
  return {
    async capacity({ resourceId, dimension }) {
      const named = nameOf(resourceId);
      const found = named === null ? null : await described(named.endpoint);
      if (named === null || found === null || found.record.state.at === "Deleting") return null;
      const [generation] = found.record.generations;
      const group = generation.variants.find(({ plan }) => plan.variant.VariantName === named.variant);
      if (group === undefined) return null;
      const { concurrency, instanceCount } = group.settled;
      const isMoving = found.record.state.at !== "InService";
      // An update can change a variant from instances to serverless or back. The dimension of the other kind does not exist
      // then.
      if ((dimension === provisioned) !== (concurrency !== undefined)) return null;
      if (concurrency !== undefined) {
        return { desired: concurrency.provisioned, running: group.observed.concurrency?.provisioned ?? 0, isMoving };
      }
      return {
        desired: instanceCount,
        running: found.inServiceCounts.get(groupKey(generation.number, named.variant)) ?? 0,
        isMoving,
        // Only variants of asynchronous endpoints can be scaled to zero.
        least: generation.asyncInference === undefined ? 1 : 0,
      };
    },
    async scale({ resourceId, dimension }, to, signal) {
      const named = nameOf(resourceId);
      if (named === null) throw new Error(`there is no ${resourceId}`);
      const { endpoint, variant } = named;
      const size = dimension === provisioned ? { concurrency: { provisioned: to } } : { instanceCount: to };
      await hosting.endpoints.resize(endpoint, [{ variantName: variant, ...size }], owner);
      return { done: reached(endpoint, variant, to, signal) };
    },
  };

  async function reached(endpoint: string, variant: string, to: number, signal: AbortSignal): Promise<void> {
    await hosting.waitUntilStable(endpoint, { waitMsMax: stableMsMax, signal });
    const { record } = await hosting.endpoints.describe(endpoint, owner);
    const group = record.generations[0].variants.find(({ plan }) => plan.variant.VariantName === variant);
    const { concurrency, instanceCount } = group?.settled ?? {};
    if ((concurrency?.provisioned ?? instanceCount) === to) return;
    throw new Error(failureReason(record.state) ?? `the endpoint is ${record.state.at}`);
  }
}

function nameOf(resourceId: string): { readonly endpoint: string; readonly variant: string } | null {
  const [, endpoint, variant] = /^endpoint\/([^/]+)\/variant\/([^/]+)$/.exec(resourceId) ?? [];
  return endpoint === undefined || variant === undefined ? null : { endpoint, variant };
}
