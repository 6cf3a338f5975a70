import { AwsError } from "@galatea/base";
import { failureReason, groupKey, type EndpointDescription, type Hosting, type Owner } from "../index.ts";
import type { ScalableResources } from "../scaling/index.ts";

/** Maximum wait for a change: longer than any endpoint takes to start. Waits end when the platform stops. */
const settledMsMax = 3_600_000;

/** The dimension of serverless variants: the number of concurrent requests for which the instance is kept warm. */
const provisioned = "sagemaker:variant:DesiredProvisionedConcurrency";

/**
 * Returns the variants of endpoints as scalable resources: by their instance counts, or for serverless ones by their
 * provisioned concurrency.
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
      // A variant that was updated to the other kind lacks this dimension.
      if ((dimension === provisioned) !== (concurrency !== undefined)) return null;
      if (concurrency !== undefined) {
        return { desired: concurrency.provisioned, running: group.observed.concurrency?.provisioned ?? 0, isMoving };
      }
      return {
        desired: instanceCount,
        running: found.inServiceCounts.get(groupKey(generation.number, named.variant)) ?? 0,
        isMoving,
        // A queue needs at least one instance, too.
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
    await hosting.settled(endpoint, { waitMsMax: settledMsMax, signal });
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
