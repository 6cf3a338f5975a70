import type { Clock, Logger } from "@galatea/base";
import type { ObjectStore } from "../objects/index.ts";
import { CaptureWriter, captureLimits, type CaptureLimits } from "./capture-writer.ts";
import { MirrorMemory, defaultMirrorLimits, type MirrorStatistics, type MirrorLimits } from "./mirror-memory.ts";

export interface MirrorsOptions {
  /** The object store for captured data. */
  readonly store: Pick<ObjectStore, "put">;
  /** Memory for all requests in flight, in bytes. The default limits on copies are computed from it. */
  readonly requestBytesMax: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Returns a number in [0, 1), which decides whether a request is copied. */
  readonly random: () => number;
  /** Returns a new unique id for a file or an event. */
  readonly newId: () => string;
  readonly limits?: MirroringLimits;
}

/** Overrides of the default limits. */
export type MirroringLimits = Partial<MirrorLimits & CaptureLimits>;

/** The memory account and the writer of captured data, which all endpoints share. */
export class Mirrors implements AsyncDisposable {
  readonly account: MirrorMemory;
  readonly captures: CaptureWriter;
  readonly options: MirrorsOptions;

  constructor(options: MirrorsOptions) {
    const { store, clock, logger, newId, requestBytesMax, limits = {} } = options;
    this.options = options;
    this.account = new MirrorMemory({ ...defaultMirrorLimits(requestBytesMax), ...limits }, { clock, logger });
    this.captures = new CaptureWriter({ store, clock, logger, newId, limits: { ...captureLimits, ...limits } });
  }

  get figures(): MirrorStatistics {
    return this.account.figures;
  }

  /** Writes the remaining captured records. Close all endpoints first. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.captures[Symbol.asyncDispose]();
  }
}
