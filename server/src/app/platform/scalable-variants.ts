import { AwsError } from "../../base/index.ts";
import { failureReason, groupKey, type EndpointDescription, type Hosting, type Owner } from "../../hosting/index.ts";
import type { ScalableResources } from "../../scaling/index.ts";

/** Longer than any endpoint takes to come up; who waits is told when the platform stops. */
const settledMsMax = 3_600_000;

/** The variants of endpoints, as Application Auto Scaling names them: by their numbers of instances. */
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
    async capacity(resourceId) {
      const named = nameOf(resourceId);
      const found = named === null ? null : await described(named.endpoint);
      if (named === null || found === null || found.record.state.at === "Deleting") return null;
      const [generation] = found.record.generations;
      const group = generation.variants.find(({ plan }) => plan.variant.VariantName === named.variant);
      if (group === undefined) return null;
      return {
        desired: group.settled.instanceCount,
        running: found.inServiceCounts.get(groupKey(generation.number, named.variant)) ?? 0,
        isMoving: found.record.state.at !== "InService",
        // What waits in a queue waits for an instance, too.
        least: generation.asyncInference === undefined ? 1 : 0,
      };
    },
    async scale(resourceId, to, signal) {
      const named = nameOf(resourceId);
      if (named === null) throw new Error(`there is no ${resourceId}`);
      const { endpoint, variant } = named;
      await hosting.endpoints.resize(endpoint, [{ variantName: variant, instanceCount: to }], owner);
      return { done: reached(endpoint, variant, to, signal) };
    },
  };

  async function reached(endpoint: string, variant: string, to: number, signal: AbortSignal): Promise<void> {
    await hosting.settled(endpoint, { waitMsMax: settledMsMax, signal });
    const { record } = await hosting.endpoints.describe(endpoint, owner);
    const group = record.generations[0].variants.find(({ plan }) => plan.variant.VariantName === variant);
    if (group?.settled.instanceCount === to) return;
    throw new Error(failureReason(record.state) ?? `the endpoint is ${record.state.at}`);
  }
}

function nameOf(resourceId: string): { readonly endpoint: string; readonly variant: string } | null {
  const [, endpoint, variant] = /^endpoint\/([^/]+)\/variant\/([^/]+)$/.exec(resourceId) ?? [];
  return endpoint === undefined || variant === undefined ? null : { endpoint, variant };
}
