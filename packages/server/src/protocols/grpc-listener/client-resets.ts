import { isIPv6 } from "node:net";
import type { Clock, Logger } from "@galatea/base";
import type { GrpcLimits } from "./limits.ts";

/** The consequence for a connection whose client has reset a call. */
export type ResetVerdict = "keep" | "close" | "destroy";

/** Addresses that are counted at a time: only those that have reset calls in the last seconds are. */
const addressesMax = 10_000;
/** After this time without resets an address has its full burst again: no client is refused for longer. */
const forgivenAfterSeconds = 10;
/** A call with a deadline of its own is often reset by honest clients of a server that is late. */
const deadlineCost = 0.1;
/** A call that ran for less costs something even if its deadline has passed: without this, calls with deadlines of a nanosecond are reset for nothing. */
const timedOutMsMin = 50;

/**
 * Counts the calls that clients reset, by address over all of its connections. A reset call no longer counts as a running one: without this
 * limit a client starts any number of calls (HTTP/2 rapid reset), and every other client waits behind them.
 */
export class ClientResets {
  readonly #limits: GrpcLimits;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** In the order of their last reset. */
  readonly #addresses = new Map<
    string,
    {
      readonly tokens: number;
      readonly atNs: number;
      /** Logged: once until the address is quiet again. */ readonly isReported: boolean;
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

  /** Whether new connections of an address are refused: it went on after its connections were closed. */
  isRefused(address: string): boolean {
    return this.#tokens(networkOf(address)) < -this.#limits.resetBurstMax;
  }

  /**
   * Counts one reset of a call that ran for `ranMs`, with the deadline that its client gave it. A call that ran for a while and whose deadline
   * is near has timed out and costs nothing; half of the deadline, since a call may wait before the server reads it.
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

/** One customer of a network has 2^64 addresses of IPv6: they count as one. */
function networkOf(address: string): string {
  if (!isIPv6(address) || address.startsWith("::ffff:")) return address;
  const [head = ""] = address.split("::");
  const groups = head.split(":");
  return [...groups, "0", "0", "0", "0"].slice(0, 4).join(":");
}
