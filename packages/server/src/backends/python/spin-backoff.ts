/** The first pause, after a preemption as any process of the system may cause. */
const pauseNsMin = 5_000_000;
const pauseNsMax = 1_280_000_000;
/** A poller that is preempted sooner than this after a pause shares its core with a process that is always ready to run. */
const repeatedNs = 20_000_000;

/**
 * Stops busy polling while another process needs the core. The kernel takes the core from a poller for a whole time slice (3 ms), and wakes
 * a sleeper within microseconds. (add_sub over gRPC, one client, two cores, one other busy process: bench/rows/grpc.ts.)
 *
 * A preemption within 20 ms of polling doubles the pause, up to 1.28 s, so that polling costs few requests a time slice. After more than
 * 20 ms of polling the pause is 5 ms again: without polling every request is slower.
 */
export class SpinBackoff {
  #pauseNs = pauseNsMin;
  #untilNs = Number.NEGATIVE_INFINITY;

  /** True outside of a pause. */
  maySpin(nowNs: number): boolean {
    return nowNs >= this.#untilNs;
  }

  /** Starts a pause. Called when a poller got its core back late. */
  preempted(nowNs: number): void {
    const isRepeated = nowNs - this.#untilNs < repeatedNs;
    this.#pauseNs = isRepeated ? Math.min(this.#pauseNs * 2, pauseNsMax) : pauseNsMin;
    this.#untilNs = nowNs + this.#pauseNs;
  }
}
