import { once, type EventEmitter } from "node:events";

/** Resolves when the stream accepts more data. Rejects with the signal's reason. */
export async function waitForDrain(stream: EventEmitter, signal: AbortSignal): Promise<void> {
  try {
    await once(stream, "drain", { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}
