import { isIPv6 } from "node:net";
import type { Clock, Logger } from "@galatea/base";
import type { GrpcLimits } from "./limits.ts";

/** The action on a connection whose client has reset a call. */
export type ResetVerdict = "keep" | "close" | "destroy";

/** Maximum number of addresses that are counted; only those with resets in the last seconds are. */
const addressesMax = 10_000;
/** Time without resets after which an address has its full burst again: no client is rejected for longer. */
const forgivenAfterSeconds = 10;
/** Cost of resetting a call with a deadline, which correct clients of a slow server often do. */
const deadlineCost = 0.1;
/**
 * A call that ran for less has a cost even if its deadline has passed. Without this, resetting calls with deadlines of a nanosecond would
 * be free.
 */
const timedOutMsMin = 50;

/**
 * Counts the calls that clients reset, by address over all of its connections. A reset call no longer counts as a running one: without this
 * limit a client starts any number of calls (HTTP/2 rapid reset), and every other client waits behind them.
 */
export class ClientResets {
  readonly #limits: GrpcLimits;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** Ordered by their last reset. */
  readonly #addresses = new Map<
    string,
    {
      readonly tokens: number;
      readonly atNs: number;
      /** True after a log line, until the address is quiet again. */
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

  /** Returns whether new connections of an address are rejected, because it continued after its connections were closed. */
  isRefused(address: string): boolean {
    return this.#tokens(networkOf(address)) < -this.#limits.resetBurstMax;
  }

  /**
   * Counts one reset of a call that ran for `ranMs`, with its client's deadline. A call that ran for a while and is close to its deadline
   * has timed out and costs nothing; close means half of the deadline, since a call may wait before the server reads it.
   */
  count(
    address: string,
    { ranMs, deadlineMs }: { readonly ranMs: number; readonly deadlineMs: number | null },
  ): ResetVerdict {
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

/** Returns the network of an address: a customer with an IPv6 network has 2^64 addresses, which count as one. */
function networkOf(address: string): string {
  if (!isIPv6(address) || address.startsWith("::ffff:")) return address;
  const [head = ""] = address.split("::");
  const groups = head.split(":");
  return [...groups, "0", "0", "0", "0"].slice(0, 4).join(":");
}
