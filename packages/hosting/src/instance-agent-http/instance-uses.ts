import { ChangeNotifier, openDeadline, rejectOnAbort, type Clock } from "@galatea/base";

/** Maximum time that the deletion of an instance waits for requests of other clients, in milliseconds. */
const drainMsMax = 60_000;

/**
 * Counts the requests in flight on each instance, by client. Several clients use an instance if a platform has gateways.
 * The platform that deletes the instance knows only its own requests.
 */
export class InstanceUses {
  readonly #clock: Clock;
  /** Number of requests in flight, by instance and then by client. */
  readonly #counts = new Map<string, Map<string, number>>();
  readonly #ending = new Set<string>();
  readonly #ended = new ChangeNotifier();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True while the deletion of the instance waits: it gets no more requests. */
  isEnding(id: string): boolean {
    return this.#ending.has(id);
  }

  /** Counts a request until the result is disposed. */
  begin(id: string, client: string): Disposable {
    const counts = this.#counts.get(id) ?? new Map<string, number>();
    this.#counts.set(id, counts.set(client, (counts.get(client) ?? 0) + 1));
    return {
      [Symbol.dispose]: () => {
        const left = (counts.get(client) ?? 1) - 1;
        if (left > 0) counts.set(client, left);
        else counts.delete(client);
        if (counts.size === 0 && this.#counts.get(id) === counts) this.#counts.delete(id);
        this.#ended.notify();
      },
    };
  }

  /** Rejects new requests until the result is disposed. Resolves when no other client has a request in flight, or after a minute. */
  async drain(id: string, client: string, signal: AbortSignal): Promise<Disposable> {
    this.#ending.add(id);
    using limit = openDeadline({ clock: this.#clock, afterMs: drainMsMax, signal });
    const isUsed = () => [...(this.#counts.get(id)?.keys() ?? [])].some((each) => each !== client);
    try {
      while (isUsed()) await rejectOnAbort(this.#ended.nextChange(), limit.signal);
    } catch (error) {
      if (!limit.hasExpired) {
        this.#ending.delete(id);
        throw error;
      }
    }
    return { [Symbol.dispose]: () => void this.#ending.delete(id) };
  }
}
