import type { Clock, Logger } from "@galatea/base";
import type { ObjectStore } from "../objects/index.ts";
import { CaptureWriter, captureLimits, type CaptureLimits } from "./capture-writer.ts";
import { MirrorAccount, mirrorLimits, type MirrorFigures, type MirrorLimits } from "./mirror-account.ts";

export interface MirrorsOptions {
  /** Where captured data is put. */
  readonly store: Pick<ObjectStore, "put">;
  /** Of all requests in flight: copies have a part of as much, beside it. */
  readonly requestBytesMax: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** In [0, 1): whether a request is copied. */
  readonly random: () => number;
  /** Of files and events. */
  readonly newId: () => string;
  readonly limits?: MirroringLimits;
}

/** Instead of those that are so by themselves. */
export type MirroringLimits = Partial<MirrorLimits & CaptureLimits>;

/** What the endpoints of a platform share for copies of their requests: the account, and the files of captured data. */
export class Mirrors implements AsyncDisposable {
  readonly account: MirrorAccount;
  readonly captures: CaptureWriter;
  readonly options: MirrorsOptions;

  constructor(options: MirrorsOptions) {
    const { store, clock, logger, newId, requestBytesMax, limits = {} } = options;
    this.options = options;
    this.account = new MirrorAccount({ ...mirrorLimits(requestBytesMax), ...limits }, { clock, logger });
    this.captures = new CaptureWriter({ store, clock, logger, newId, limits: { ...captureLimits, ...limits } });
  }

  get figures(): MirrorFigures {
    return this.account.figures;
  }

  /** What has been captured is written. To be closed behind the endpoints. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.captures[Symbol.asyncDispose]();
  }
}
