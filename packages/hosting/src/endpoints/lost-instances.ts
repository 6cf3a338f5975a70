import { rejectOnAbort, type Logger } from "@galatea/base";
import type { Nodes } from "../nodes/index.ts";
import type { VariantInstance } from "./variant-instance.ts";

/**
 * Waits until an instance is lost, because its agent has lost it or does not respond, or until its agent shuts down. Then
 * calls `replace` whenever a node may have capacity, until `replace` resolves with true. Resolves early if `isMember`
 * returns false.
 */
export async function replaceLostOrDraining(
  instance: Pick<VariantInstance, "isLost" | "isDraining" | "lostOrDraining">,
  {
    nodes,
    isMember,
    replace,
  }: {
    readonly nodes: Pick<Nodes, "whenFreed">;
    readonly isMember: () => boolean;
    readonly replace: (closing: AbortSignal) => Promise<boolean>;
  },
  closing: AbortSignal,
): Promise<void> {
  for (;;) {
    await instance.lostOrDraining(closing);
    const freed = nodes.whenFreed();
    if (!isMember()) return;
    if ((instance.isLost || instance.isDraining) && (await replace(closing))) return;
    await rejectOnAbort(freed, closing);
  }
}

/**
 * Starts the replacement of a lost or draining instance. A draining instance serves until its replacement is in service
 * and has its models. Resolves with null if no node has capacity, or if the replacement of a draining instance does not
 * start.
 */
export async function startReplacement(
  left: VariantInstance,
  {
    open,
    warm,
    logger,
  }: {
    /** Opens an instance on a node. Throws if no node has capacity. */
    readonly open: () => VariantInstance;
    /** Loads the models of the draining instance. */
    readonly warm: (member: VariantInstance) => Promise<void>;
    readonly logger: Logger;
  },
  closing: AbortSignal,
): Promise<VariantInstance | null> {
  let member: VariantInstance;
  try {
    member = open();
  } catch (error) {
    const details = { instance: left.id, error: String(error) };
    logger.warning("an instance is lost, and no node has capacity for another one", details);
    return null;
  }
  if (left.isLost) {
    member.resume();
    return member;
  }
  try {
    await member.start(closing);
  } catch (error) {
    closing.throwIfAborted();
    const details = { instance: left.id, error: String(error) };
    logger.warning("an instance drains, and its replacement did not start", details);
    return null;
  }
  try {
    await warm(member);
    return member;
  } catch (error) {
    await member[Symbol.asyncDispose]();
    throw error;
  }
}
