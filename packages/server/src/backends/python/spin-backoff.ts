/** The first pause, after a preemption that any process of the system may have caused. */
const pauseNsMin = 5_000_000;
const pauseNsMax = 1_280_000_000;
/** When a polling thread is preempted sooner than this after a pause, another process uses its core permanently. */
const repeatedNs = 20_000_000;

/**
 * Stops busy polling while another process needs the core. The kernel takes the core from a polling thread for a whole time slice (3 ms),
 * but wakes a sleeping one within microseconds (bench/rows/grpc.ts).
 *
 * A preemption within 20 ms after a pause doubles the next pause, up to 1.28 s, so that few requests lose a time slice. After a longer time
 * of polling, the next pause is 5 ms again, because every request is slower without polling.
 */
export class SpinBackoff {
  #pauseNs = pauseNsMin;
  #untilNs = Number.NEGATIVE_INFINITY;

  /** True when no pause is in effect. */
  maySpin(nowNs: number): boolean {
    return nowNs >= this.#untilNs;
  }

  /** Starts a pause. Called when a polling thread got its core back late. */
  preempted(nowNs: number): void {
    const isRepeated = nowNs - this.#untilNs < repeatedNs;
    this.#pauseNs = isRepeated ? Math.min(this.#pauseNs * 2, pauseNsMax) : pauseNsMin;
    this.#untilNs = nowNs + this.#pauseNs;
  }
}
