/** Duration of the first pause. Any process of the system may have caused the preemption before it. */
const pauseNsMin = 5_000_000;
const pauseNsMax = 1_280_000_000;
/** If a polling thread is preempted within this time after a pause, another process is assumed to use the core permanently. */
const repeatedNs = 20_000_000;

/**
 * Stops busy polling while another process needs the core. The kernel preempts a polling thread for a whole time slice (3 ms), but wakes a
 * sleeping thread within microseconds (bench/rows/grpc.ts).
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
