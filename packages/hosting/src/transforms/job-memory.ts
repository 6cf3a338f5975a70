import type { ByteBudget } from "@galatea/base";

/** Fraction of the memory for requests in flight that jobs may use. The other part is for clients. */
const share = 1 / 2;

interface Waiting {
  readonly account: ObjectMemory;
  readonly bytes: number;
  readonly admit: () => void;
}

/**
 * The memory of the objects of all transform jobs: payloads, responses and incomplete records. Unlike clients, jobs
 * wait for memory, in the order of their requests. An object may wait while it has memory, which could cause a
 * deadlock. Therefore the oldest object never waits: it can always finish, and the next object becomes the oldest. The
 * limit is exceeded by at most the memory of one object.
 */
export class JobMemory {
  readonly #budget: ByteBudget;
  /** Open accounts, in the order in which they were opened. */
  readonly #accounts = new Set<ObjectMemory>();
  readonly #waiting = new Set<Waiting>();
  #usedBytes = 0;

  /**
   * `budget`: the memory of all requests in flight. Bytes of jobs are counted in it, so that clients are rejected when
   * memory is short.
   */
  constructor(budget: ByteBudget) {
    this.#budget = budget;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Opens the account of one object. Dispose it when the object is finished. */
  open(): ObjectMemory {
    const account: ObjectMemory = new ObjectMemory({
      tryTake: (bytes) => this.#tryTake(account, bytes),
      take: (bytes, signal) => this.#take(account, bytes, signal),
      release: (bytes) => this.#release(bytes),
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
      const disconnect = () => {
        this.#waiting.delete(waiting);
        reject(signal.reason as Error);
        this.#admit();
      };
      const admit = () => {
        signal.removeEventListener("abort", disconnect);
        this.#waiting.delete(waiting);
        this.#took(bytes);
        resolve();
      };
      const waiting: Waiting = { account, bytes, admit };
      if (signal.aborted) return reject(signal.reason as Error);
      this.#waiting.add(waiting);
      signal.addEventListener("abort", disconnect, { once: true });
      this.#admit();
    });
  }

  #took(bytes: number): void {
    this.#usedBytes += bytes;
    this.#budget.reserveUnchecked(bytes);
  }

  #release(bytes: number): void {
    this.#usedBytes -= bytes;
    this.#budget.release(bytes);
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
  readonly release: (bytes: number) => void;
  readonly closed: () => void;
}

/** The memory account of one object. Disposal frees all of it. */
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

  /** Reserves bytes; returns null if they are not available now. */
  tryHold(bytes: number): BytesLease | null {
    return this.#account.tryTake(bytes) ? this.#lease(bytes) : null;
  }

  /** Reserves bytes, and waits until they are available. Rejects with the signal's reason. */
  async hold(bytes: number, signal: AbortSignal): Promise<BytesLease> {
    const now = this.tryHold(bytes);
    if (now !== null) return now;
    await this.#account.take(bytes, signal);
    return this.#lease(bytes);
  }

  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#account.release(this.#bytes);
    this.#bytes = 0;
    this.#account.closed();
  }

  #lease(bytes: number): BytesLease {
    this.#bytes += bytes;
    const lease = new BytesLease(bytes, (input) => {
      if (this.#isClosed) return;
      this.#bytes -= input;
      this.#account.release(input);
    });
    // The account was disposed during the wait.
    if (this.#isClosed) {
      this.#account.release(bytes);
      this.#bytes -= bytes;
    }
    return lease;
  }
}

/** A reservation of bytes for an object. Disposal frees them. */
export class BytesLease implements Disposable {
  readonly #release: (bytes: number) => void;
  #bytes: number;

  constructor(bytes: number, give: (bytes: number) => void) {
    this.#bytes = bytes;
    this.#release = give;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Frees all bytes above `bytes`. Does nothing if the reservation is not larger. */
  shrinkTo(bytes: number): void {
    const input = this.#bytes - bytes;
    if (input <= 0) return;
    this.#bytes = bytes;
    this.#release(input);
  }

  [Symbol.dispose](): void {
    this.shrinkTo(0);
  }
}
