import { closeSync } from "node:fs";
import { assert } from "@galatea/base";
import { openSocketPair } from "@galatea/base/system";
import { Lane } from "./lane.ts";

export interface RunnerLanesOptions {
  readonly lanesMax: number;
  /** Starts the lane's thread at the other end of its socket. The caller still owns the descriptor. */
  readonly open: (number: number, fd: number) => Promise<unknown>;
  /**
   * Called when a thread has ended or sent an invalid result. The run itself fails later, with the end of the process, which is the better
   * explanation.
   */
  readonly onBroken: () => void;
}

/** The lanes of one runner process. Each is opened when it is first needed, and kept. */
export class RunnerLanes {
  readonly #options: RunnerLanesOptions;
  readonly #lanes: (Promise<Lane> | null)[] = [];
  /** All opened lanes. One whose thread has ended stays here, because its pending run fails when the process ends. */
  readonly #opened = new Set<Lane>();
  readonly #busy = new Set<number>();

  constructor(options: RunnerLanesOptions) {
    this.#options = options;
  }

  /** Opens the first lane ahead of its first run. */
  async warmUp(): Promise<void> {
    await this.#lane(0);
  }

  /** Takes an idle lane: preferably number `home`, otherwise an open one, otherwise a new one. */
  async take(home: number): Promise<Lane> {
    const { lanesMax } = this.#options;
    let free = -1;
    for (let place = 0; place < lanesMax; place += 1) {
      const number = (home + place) % lanesMax;
      if (this.#busy.has(number)) continue;
      if (free === -1) free = number;
      const isThere = this.#lanes[number] !== undefined && this.#lanes[number] !== null;
      if (!isThere && number !== home) continue;
      free = number;
      break;
    }
    assert(free !== -1, "more runs at once than there are lanes");
    this.#busy.add(free);
    try {
      return await this.#lane(free);
    } catch (error) {
      this.#busy.delete(free);
      throw error;
    }
  }

  giveBack(lane: Lane): void {
    this.#busy.delete(lane.number);
  }

  /** Rejects the pending runs of all lanes. */
  fail(error: Error): void {
    for (const lane of this.#opened) lane.fail(error);
  }

  close(): void {
    for (const lane of this.#opened) lane.close();
  }

  #lane(number: number): Promise<Lane> {
    return (this.#lanes[number] ??= this.#open(number));
  }

  async #open(number: number): Promise<Lane> {
    const pair = openSocketPair();
    const lane = new Lane(number, pair.ours, () => this.#onBroken(number));
    this.#opened.add(lane);
    try {
      await this.#options.open(number, pair.theirs);
      return lane;
    } catch (error) {
      this.#lanes[number] = null;
      this.#opened.delete(lane);
      lane.close();
      throw error;
    } finally {
      closeSync(pair.theirs);
    }
  }

  #onBroken(number: number): void {
    this.#lanes[number] = null;
    this.#options.onBroken();
  }
}
