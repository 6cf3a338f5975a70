import { setImmediate as nextTurn } from "node:timers/promises";
import { parseLogLines } from "./log-lines.ts";
import type { LogFollower, NewLogEvent } from "./log-streams.ts";

/** Maximum length of the text that followers get before the event loop runs other work. */
const lengthPerTurn = 64 * 1024;

/** Followers, which are notified of lines once these are in their file. */
export class LogFollowers {
  readonly #followers = new Set<LogFollower>();
  readonly #failed: (error: unknown) => void;

  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  add(follower: LogFollower): Disposable {
    this.#followers.add(follower);
    return { [Symbol.dispose]: () => void this.#followers.delete(follower) };
  }

  /**
   * Resolves when all followers were notified, so that a fast writer waits. Lines without a follower are not parsed.
   */
  async notify(group: string, stream: string, lines: string): Promise<void> {
    const wanting = [...this.#followers].filter((follower) => follower.wants(group, stream));
    if (wanting.length === 0) return;
    for (let start = 0; start < lines.length;) {
      const end = lines.indexOf("\n", start + lengthPerTurn) + 1 || lines.length;
      const events: NewLogEvent[] = [];
      const bytes = Buffer.from(lines.slice(start, end));
      for (const { timestampMs, message } of parseLogLines(bytes, { segment: 0, offset: 0 })) {
        events.push({ timestampMs, message });
      }
      for (const follower of wanting) {
        try {
          await follower.receive(group, stream, events);
        } catch (error) {
          this.#failed(error);
        }
      }
      start = end;
      await nextTurn();
    }
  }
}
