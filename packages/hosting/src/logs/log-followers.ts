import { setImmediate as nextTurn } from "node:timers/promises";
import { parseLogLines } from "./log-lines.ts";
import type { LogFollower, NewLogEvent } from "./log-streams.ts";

/** Maximum number of characters that followers receive in one event loop tick. */
const lengthPerTurn = 64 * 1024;

/** Followers of log streams. They are notified of lines after the lines are written to the file. */
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
   * Notifies the followers of a stream. Resolves when all have handled the lines, so that a fast writer waits for them.
   * Lines are parsed only if the stream has a follower.
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
