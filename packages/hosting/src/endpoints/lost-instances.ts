import { rejectOnAbort } from "@galatea/base";
import type { Nodes } from "../nodes/index.ts";
import type { VariantInstance } from "./variant-instance.ts";

/**
 * Waits until an instance is lost, because its agent has lost it or does not respond. Then calls `replace` whenever a
 * node may have capacity, until `replace` returns true. Resolves early if `isMember` returns false.
 */
export async function replaceWhenLost(
  instance: Pick<VariantInstance, "isLost" | "lost">,
  {
    nodes,
    isMember,
    replace,
  }: {
    readonly nodes: Pick<Nodes, "whenFreed">;
    readonly isMember: () => boolean;
    readonly replace: () => boolean;
  },
  closing: AbortSignal,
): Promise<void> {
  for (;;) {
    await instance.lost(closing);
    const freed = nodes.whenFreed();
    if (!isMember() || (instance.isLost && replace())) return;
    await rejectOnAbort(freed, closing);
  }
}
