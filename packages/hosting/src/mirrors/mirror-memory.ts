import { ByteBudget, ByteLease, type Clock, type Logger } from "@galatea/base";

/** Limits on copies of calls, for all endpoints together and for each endpoint. */
export interface MirrorLimits {
  readonly bytesMax: number;
  readonly endpointBytesMax: number;
  readonly callsMax: number;
  readonly endpointCallsMax: number;
}

/**
 * Returns the default limits. Copies may use an eighth of the memory of requests in flight, in addition to that memory.
 * A copy therefore never displaces a caller's request.
 */
export function defaultMirrorLimits(requestBytesMax: number): MirrorLimits {
  const bytesMax = Math.min(512 * mebi, Math.max(32 * mebi, Math.floor(requestBytesMax / 8)));
  return { bytesMax, endpointBytesMax: bytesMax / 2, callsMax: 100_000, endpointCallsMax: 50_000 };
}

const mebi = 2 ** 20;

/** Estimated bytes of a copied call without its bodies: its record, names and times. */
const callBytes = 1024;

/** Reasons for dropping a copy. */
export const mirrorDropReasons = [
  /** Not enough memory for the copy. */
  "no-room",
  /** Too many requests to the shadow variant are in flight. */
  "shadow-busy",
  /** The request or response body ended early, or was not read completely. */
  "cut-short",
  /** The file could not be written. */
  "not-written",
] as const;
export type MirrorDropReason = (typeof mirrorDropReasons)[number];

export interface MirrorStatistics {
  readonly callCount: number;
  readonly bytes: number;
  readonly lost: Readonly<Record<MirrorDropReason, number>>;
}

const toldAgainMs = 60_000;

/** A budget within another budget: each byte is counted in both. */
class PartialBudget extends ByteBudget {
  readonly #complete: ByteBudget;

  constructor(bytesMax: number, complete: ByteBudget) {
    super(bytesMax);
    this.#complete = complete;
  }

  override fits(bytes: number): boolean {
    return super.fits(bytes) && this.#complete.fits(bytes);
  }

  override reserveUnchecked(bytes: number): void {
    super.reserveUnchecked(bytes);
    this.#complete.reserveUnchecked(bytes);
  }

  override release(bytes: number): void {
    super.release(bytes);
    this.#complete.release(bytes);
  }
}

/**
 * The memory account of all copies of requests and responses. A call is not copied if memory is short, and never waits
 * for memory. Dropped copies are counted, and logged at most once a minute.
 */
export class MirrorMemory {
  readonly limits: MirrorLimits;
  readonly bytes: ByteBudget;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #lost = Object.fromEntries(mirrorDropReasons.map((loss) => [loss, 0])) as Record<MirrorDropReason, number>;
  #callCount = 0;
  #untoldCount = 0;
  #lastReportMs = -Infinity;

  constructor(limits: MirrorLimits, { clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.limits = limits;
    this.bytes = new ByteBudget(limits.bytesMax);
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Returns the part of the account for one endpoint. */
  share(endpointName: string): EndpointMirrorMemory {
    return new EndpointMirrorMemory(this, endpointName);
  }

  get figures(): MirrorStatistics {
    return { callCount: this.#callCount, bytes: this.bytes.usedBytes, lost: { ...this.#lost } };
  }

  /** Counts a call and returns true if one more call can be copied. Call `left` when the copy ends. */
  enter(): boolean {
    if (this.#callCount >= this.limits.callsMax) return false;
    this.#callCount += 1;
    return true;
  }

  left(): void {
    this.#callCount -= 1;
  }

  lose(endpointName: string, loss: MirrorDropReason, callCount = 1): void {
    this.#lost[loss] += callCount;
    this.#untoldCount += callCount;
    const nowMs = this.#clock.epochMs();
    if (nowMs - this.#lastReportMs < toldAgainMs) return;
    const message = "copies of requests for shadow variants or data capture were dropped";
    this.#logger.warning(message, { count: this.#untoldCount, lastEndpoint: endpointName, lastReason: loss });
    this.#lastReportMs = nowMs;
    this.#untoldCount = 0;
  }
}

/** The part of the memory account for one endpoint. */
export class EndpointMirrorMemory {
  readonly endpointName: string;
  readonly #account: MirrorMemory;
  readonly #bytes: ByteBudget;
  #callCount = 0;

  constructor(account: MirrorMemory, endpointName: string) {
    this.endpointName = endpointName;
    this.#account = account;
    this.#bytes = new PartialBudget(account.limits.endpointBytesMax, account.bytes);
  }

  /** Opens a lease for a call. Returns null if memory is short, and counts the call as dropped. */
  open(): MirrorLease | null {
    if (this.#callCount >= this.#account.limits.endpointCallsMax || !this.#bytes.fits(callBytes)) {
      this.lose("no-room");
      return null;
    }
    if (!this.#account.enter()) {
      this.lose("no-room");
      return null;
    }
    this.#callCount += 1;
    const memory = this.memory();
    memory.grow(callBytes);
    return new MirrorLease(memory, () => {
      this.#callCount -= 1;
      this.#account.left();
    });
  }

  /** Returns a lease for memory that is not a copy, such as a buffered response of a shadow variant. */
  memory(): ByteLease {
    return new ByteLease(this.#bytes);
  }

  lose(loss: MirrorDropReason, callCount = 1): void {
    this.#account.lose(this.endpointName, loss, callCount);
  }
}

/**
 * The memory of one call's copies. The memory is freed when the last holder releases the lease. A new lease has one
 * holder.
 */
export class MirrorLease {
  readonly #memory: ByteLease;
  readonly #ended: () => void;
  #holderCount = 1;

  constructor(memory: ByteLease, ended: () => void) {
    this.#memory = memory;
    this.#ended = ended;
  }

  get bytes(): number {
    return this.#memory.bytes;
  }

  /** Adds bytes to the lease. Returns false and adds nothing if memory is short. */
  keep(bytes: number): boolean {
    if (!this.#memory.fits(bytes)) return false;
    this.#memory.grow(bytes);
    return true;
  }

  /** Frees bytes that `keep` added. */
  shrink(bytes: number): void {
    this.#memory.shrinkBy(bytes);
  }

  retain(): this {
    this.#holderCount += 1;
    return this;
  }

  /** Releases one holder's claim. Each holder must call it exactly once. */
  release(): void {
    this.#holderCount -= 1;
    if (this.#holderCount > 0) return;
    this.#memory[Symbol.dispose]();
    this.#ended();
  }
}
