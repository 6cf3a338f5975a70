import type { ByteBudget } from "@galatea/base";

/** Of the bytes that requests in flight may take; what clients send and are sent keeps the rest for itself. */
const share = 1 / 2;

interface Waiting {
  readonly account: ObjectMemory;
  readonly bytes: number;
  readonly admit: () => void;
}

/**
 * What the objects of all transform jobs hold in memory together: payloads, answers, the beginnings of records. Unlike clients, jobs wait
 * for bytes, in the order in which they asked. An object waits while it holds some, so the one that was begun first is never kept waiting:
 * it can always be finished, and then the next is the first. Beyond the bound there is what one object needs, at most.
 */
export class JobMemory {
  readonly #budget: ByteBudget;
  /** In the order in which they were opened. */
  readonly #accounts = new Set<ObjectMemory>();
  readonly #waiting = new Set<Waiting>();
  #usedBytes = 0;

  /** The bytes are taken from the budget too, so that clients are refused what is not there; jobs themselves may have their share of it. */
  constructor(budget: ByteBudget) {
    this.#budget = budget;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Of one object; to be disposed when nothing of it is held any more. */
  open(): ObjectMemory {
    const account: ObjectMemory = new ObjectMemory({
      tryTake: (bytes) => this.#tryTake(account, bytes),
      take: (bytes, signal) => this.#take(account, bytes, signal),
      give: (bytes) => this.#give(bytes),
      closed: () => {
        this.#accounts.delete(account);
        this.#admit();
      },
    });
    this.#accounts.add(account);
    return account;
  }

  #isFirst(account: ObjectMemory): boolean {
    const [first] = this.#accounts;
    return first === account;
  }

  #fits(bytes: number): boolean {
    return this.#usedBytes + bytes <= this.#budget.bytesMax * share;
  }

  #tryTake(account: ObjectMemory, bytes: number): boolean {
    if (!this.#isFirst(account) && (this.#waiting.size > 0 || !this.#fits(bytes))) return false;
    this.#took(bytes);
    return true;
  }

  #take(account: ObjectMemory, bytes: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(waiting);
        reject(signal.reason as Error);
        this.#admit();
      };
      const admit = () => {
        signal.removeEventListener("abort", leave);
        this.#waiting.delete(waiting);
        this.#took(bytes);
        resolve();
      };
      const waiting: Waiting = { account, bytes, admit };
      if (signal.aborted) return reject(signal.reason as Error);
      this.#waiting.add(waiting);
      signal.addEventListener("abort", leave, { once: true });
      this.#admit();
    });
  }

  #took(bytes: number): void {
    this.#usedBytes += bytes;
    this.#budget.takeAnyway(bytes);
  }

  #give(bytes: number): void {
    this.#usedBytes -= bytes;
    this.#budget.give(bytes);
    this.#admit();
  }

  #admit(): void {
    let isNext = true;
    for (const { account, bytes, admit } of this.#waiting) {
      if (this.#isFirst(account) || (isNext && this.#fits(bytes))) admit();
      else isNext = false;
    }
  }
}

interface Account {
  readonly tryTake: (bytes: number) => boolean;
  readonly take: (bytes: number, signal: AbortSignal) => Promise<void>;
  readonly give: (bytes: number) => void;
  readonly closed: () => void;
}

/** What one object holds. Disposed, everything of it is given back. */
export class ObjectMemory implements Disposable {
  readonly #account: Account;
  #bytes = 0;
  #isClosed = false;

  constructor(account: Account) {
    this.#account = account;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Null where that is not to be had now. */
  tryHold(bytes: number): HeldBytes | null {
    return this.#account.tryTake(bytes) ? this.#held(bytes) : null;
  }

  /** Waits for others to give back what is missing; rejects with the signal's reason. */
  async hold(bytes: number, signal: AbortSignal): Promise<HeldBytes> {
    const now = this.tryHold(bytes);
    if (now !== null) return now;
    await this.#account.take(bytes, signal);
    return this.#held(bytes);
  }

  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#account.give(this.#bytes);
    this.#bytes = 0;
    this.#account.closed();
  }

  #held(bytes: number): HeldBytes {
    this.#bytes += bytes;
    const held = new HeldBytes(bytes, (given) => {
      if (this.#isClosed) return;
      this.#bytes -= given;
      this.#account.give(given);
    });
    // It was disposed of while this was waited for.
    if (this.#isClosed) {
      this.#account.give(bytes);
      this.#bytes -= bytes;
    }
    return held;
  }
}

/** Bytes of an object, until they are given back. */
export class HeldBytes implements Disposable {
  readonly #give: (bytes: number) => void;
  #bytes: number;

  constructor(bytes: number, give: (bytes: number) => void) {
    this.#bytes = bytes;
    this.#give = give;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Gives all but so many back; does nothing where it has no more. */
  shrinkTo(bytes: number): void {
    const given = this.#bytes - bytes;
    if (given <= 0) return;
    this.#bytes = bytes;
    this.#give(given);
  }

  [Symbol.dispose](): void {
    this.shrinkTo(0);
  }
}
