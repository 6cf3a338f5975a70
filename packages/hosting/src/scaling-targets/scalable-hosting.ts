import type { Hosting, Owner } from "../index.ts";
import type { ScalableResources, TargetKey } from "../scaling/index.ts";
import { componentFromResourceId, scalableComponents } from "./scalable-components.ts";
import { scalableVariants } from "./scalable-variants.ts";

/** Returns variants and inference components as scalable resources of Application Auto Scaling. */
export function hostingScalableResources(hosting: Hosting, owner: Owner): ScalableResources {
  const [variants, components] = [scalableVariants(hosting, owner), scalableComponents(hosting, owner)];
  const of = ({ resourceId }: TargetKey) => (componentFromResourceId(resourceId) === null ? variants : components);
  return {
    capacity: (target) => of(target).capacity(target),
    scale: (target, to, signal) => of(target).scale(target, to, signal),
  };
}
