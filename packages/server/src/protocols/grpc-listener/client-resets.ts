import { isIPv6 } from "node:net";
import type { Clock, Logger } from "@galatea/base";
import type { GrpcLimits } from "./limits.ts";

/** The action for a connection whose client has reset a call. */
export type ResetAction = "keep" | "close" | "destroy";

/** Maximum number of addresses that are counted. Only addresses with resets in the last seconds need an entry. */
const addressesMax = 10_000;
/** Seconds without resets after which an address has its full burst again. No client is rejected for a longer time. */
const forgivenAfterSeconds = 10;
/** Cost of resetting a call that has a deadline. It is low because correct clients of a slow server often reset such calls. */
const deadlineCost = 0.1;
/**
 * Minimum duration of a call whose reset costs nothing because its deadline has passed. Without this, calls with deadlines of a nanosecond
 * could be reset for free.
 */
const timedOutMsMin = 50;

/**
 * Counts the calls that clients reset, by address over all connections. HTTP/2 does not count a reset call as a running one. Without this
 * limit, a client could start any number of calls (HTTP/2 rapid reset) and delay every other client.
 */
export class ClientResets {
  readonly #limits: GrpcLimits;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** Addresses ordered by their last reset. */
  readonly #addresses = new Map<
    string,
    {
      readonly tokens: number;
      readonly atNs: number;
      /** True if a log line has reported this address. It is false again after the address has stopped resetting calls. */
      readonly isReported: boolean;
    }
  >();

  constructor({
    limits,
    clock,
    logger,
  }: {
    readonly limits: GrpcLimits;
    readonly clock: Clock;
    readonly logger: Logger;
  }) {
    this.#limits = limits;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Returns whether new connections of an address are rejected, because it continued to reset calls after its connections were closed. */
  isRefused(address: string): boolean {
    return this.#tokens(networkOf(address)) < -this.#limits.resetBurstMax;
  }

  /**
   * Counts one reset of a call that ran for `ranMs` and had this deadline. The reset costs nothing if the call ran for at least half of its
   * deadline and at least `timedOutMsMin`, because it has then timed out. Half is enough, because the deadline may have begun before the
   * server read the call.
   */
  count(
    address: string,
    { ranMs, deadlineMs }: { readonly ranMs: number; readonly deadlineMs: number | null },
  ): ResetAction {
    if (deadlineMs !== null && ranMs >= Math.max(deadlineMs / 2, timedOutMsMin)) return "keep";
    const { resetBurstMax, resetsPerSecondMax } = this.#limits;
    const network = networkOf(address);
    const left = this.#tokens(network) - (deadlineMs === null ? 1 : deadlineCost);
    const tokens = Math.max(left, resetBurstMax - forgivenAfterSeconds * resetsPerSecondMax);
    let isReported = this.#addresses.get(network)?.isReported ?? false;
    if (tokens < 0 && !isReported) {
      isReported = true;
      this.#logger.warning(
        `gRPC: client ${address} resets more than ${resetsPerSecondMax} calls a second before their deadlines: its connections are closed`,
      );
    }
    this.#addresses.delete(network);
    this.#addresses.set(network, { tokens, atNs: this.#clock.monotonicNs(), isReported });
    const [oldest] = this.#addresses.keys();
    if (this.#addresses.size > addressesMax && oldest !== undefined) this.#addresses.delete(oldest);
    if (tokens >= 0) return "keep";
    return tokens < -resetBurstMax ? "destroy" : "close";
  }

  #tokens(network: string): number {
    const { resetBurstMax, resetsPerSecondMax } = this.#limits;
    const known = this.#addresses.get(network);
    if (known === undefined) return resetBurstMax;
    const tokens = known.tokens + ((this.#clock.monotonicNs() - known.atNs) / 1e9) * resetsPerSecondMax;
    if (tokens < resetBurstMax) return tokens;
    this.#addresses.delete(network);
    return resetBurstMax;
  }
}

/** Returns the network of an address. One customer with IPv6 has 2^64 addresses; resets from all of them are counted together. */
function networkOf(address: string): string {
  if (!isIPv6(address) || address.startsWith("::ffff:")) return address;
  const [head = ""] = address.split("::");
  const groups = head.split(":");
  return [...groups, "0", "0", "0", "0"].slice(0, 4).join(":");
}
