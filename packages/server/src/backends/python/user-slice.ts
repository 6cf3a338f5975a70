import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { lockDirectory } from "@galatea/base/processes";
import type { UserRange } from "./confinement-plan.ts";

/** Number of user ids of one server. Servers with the same data directory divide the operator's range among themselves. */
const sliceUsers = 4096;

/**
 * Assigns each tenant a user id that no running tenant has. An id is reused as late as possible, so that no process of the previous tenant
 * is left by then.
 */
export class UserSlice implements Disposable {
  readonly #range: UserRange;
  readonly #lock: Disposable;
  readonly #used = new Set<number>();
  readonly #releasing = new Set<number>();
  #next = 0;

  private constructor(range: UserRange, lock: Disposable) {
    this.#range = range;
    this.#lock = lock;
  }

  /**
   * Locks the first free slice of the range; returns null if other servers use all slices. Data directories start the search at different
   * slices.
   */
  static open(range: UserRange, directory: string): UserSlice | null {
    const sliceCount = Math.max(1, Math.floor(range.count / sliceUsers));
    const begin = createHash("sha256").update(directory).digest().readUInt32LE(0) % sliceCount;
    for (let index = 0; index < sliceCount; index++) {
      const slice = (begin + index) % sliceCount;
      const location = join(directory, String(slice));
      mkdirSync(location, { recursive: true });
      const lock = lockDirectory(location);
      if (lock === null) continue;
      const first = range.first + slice * sliceUsers;
      return new UserSlice({ first, count: Math.min(sliceUsers, range.count) }, lock);
    }
    return null;
  }

  has(user: number): boolean {
    return user >= this.#range.first && user < this.#range.first + this.#range.count;
  }

  /** Returns whether no running tenant has this user id. */
  isFree(user: number): boolean {
    return this.has(user) && (!this.#used.has(user) || this.#releasing.has(user));
  }

  /** Assigns a free user id and returns it; returns null if all are assigned. */
  take(): number | null {
    const { first, count } = this.#range;
    for (let tried = 0; tried < count; tried++) {
      const user = first + this.#next;
      this.#next = (this.#next + 1) % count;
      if (this.#used.has(user)) continue;
      this.#used.add(user);
      return user;
    }
    return null;
  }

  /** Marks the user's tenant as ended. The id is not assigned again before `free` is called. */
  release(user: number): void {
    this.#releasing.add(user);
  }

  free(user: number): void {
    this.#releasing.delete(user);
    this.#used.delete(user);
  }

  [Symbol.dispose](): void {
    this.#lock[Symbol.dispose]();
  }
}
