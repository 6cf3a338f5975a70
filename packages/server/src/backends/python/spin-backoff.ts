/** The first pause. About the time in which the kernel shares a core out anew. */
const pauseNsMin = 20_000_000;
const pauseNsMax = 1_280_000_000;

/**
 * Stops busy polling while another process needs the core. The kernel takes the core from a poller for a whole time slice (3 ms), and wakes
 * a sleeper within microseconds. (add_sub over gRPC, one client, two cores, one other busy process: bench/rows/grpc.ts.)
 *
 * Each preemption doubles the pause, up to 1.28 s, so that polling costs fewer than one request in a hundred a time slice. A preemption
 * that comes longer after the pause than the pause was long starts with the shortest pause again.
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
    const isRepeated = nowNs - this.#untilNs < this.#pauseNs;
    this.#pauseNs = isRepeated ? Math.min(this.#pauseNs * 2, pauseNsMax) : pauseNsMin;
    this.#untilNs = nowNs + this.#pauseNs;
  }
}
