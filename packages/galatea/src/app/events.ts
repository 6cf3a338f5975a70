import type { EventsOptions } from "../options/index.ts";
import { withPlatformClient } from "./platform-client.ts";

interface EventsPage {
  readonly events: readonly object[];
  readonly next: string;
}

const waitSeconds = 20;
const eventsPerPage = 500;

/** Runs `galatea events`, which prints the stored events as lines of JSON, and then new ones. */
export function events(options: EventsOptions): Promise<number> {
  return withPlatformClient("events", options, async (client) => {
    for (let after = String(options.after); ;) {
      const wait = options.follow ? waitSeconds : 0;
      const query = `after=${after}&limit=${eventsPerPage}&wait=${wait}`;
      const page = (await client.request("GET", `/galatea/events?${query}`)) as EventsPage;
      if (page.events.length === 0 && !options.follow) return 0;
      const lines = page.events.map((event) => `${JSON.stringify(event)}\n`).join("");
      if (lines !== "") await written(lines);
      // The reader of stdout has closed it, as in `galatea events | head`.
      if (!process.stdout.writable) return 0;
      after = page.next;
    }
  });
}

/** Resolves when the reader of stdout has received the text or has closed stdout. */
function written(text: string): Promise<void> {
  return new Promise((resolve) => process.stdout.write(text, () => resolve()));
}
