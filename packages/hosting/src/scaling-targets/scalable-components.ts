import { AwsError } from "@galatea/base";
import type { Hosting, Owner } from "../index.ts";
import type { ScalableResources } from "../scaling/index.ts";

/** Maximum wait for a scaling activity, in milliseconds: longer than any copy takes to start. */
const stableMsMax = 3_600_000;

/** Returns inference components as scalable resources of Application Auto Scaling, with the number of copies as capacity. */
export function scalableComponents({ components }: Hosting, owner: Owner): ScalableResources {
  return {
    async capacity({ resourceId }) {
      const name = componentFromResourceId(resourceId);
      if (name === null) return null;
      try {
        const { state, copyCount } = await components.find(name, owner);
        if (state.at === "Deleting" || state.at === "Failed") return null;
        const isMoving = state.at !== "InService";
        return { desired: copyCount, running: components.inServiceCount(name), isMoving };
      } catch (error) {
        if (error instanceof AwsError) return null;
        throw error;
      }
    },
    async scale({ resourceId }, to, signal) {
      const name = componentFromResourceId(resourceId);
      if (name === null) throw new Error(`there is no ${resourceId}`);
      await components.update({ name, owner, spec: null, copyCount: to, rolling: null });
      return { done: reached(name, to, signal) };
    },
  };

  async function reached(name: string, to: number, signal: AbortSignal): Promise<void> {
    await components.waitUntilStable(name, { waitMsMax: stableMsMax, signal });
    const { state, copyCount } = await components.find(name, owner);
    if (state.at === "InService" && copyCount === to) return;
    const reason = state.at === "InService" ? state.lastFailure : null;
    throw new Error(reason ?? `the inference component is ${state.at}`);
  }
}

export function componentFromResourceId(resourceId: string): string | null {
  return /^inference-component\/([^/]+)$/.exec(resourceId)?.[1] ?? null;
}
