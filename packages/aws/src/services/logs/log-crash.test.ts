/**
 * Kills a platform at every step of the operations that change log groups, streams and metric filters. After a restart,
 * the change is either complete or absent.
 */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { readdir, readFile, stat, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { silentLogger } from "@galatea/base";
import { clockWithoutTimers } from "@galatea/base/core/clock-without-timers-fixture.ts";
import { createDirectoryLogStreams, type LogStreams } from "@galatea/hosting";
import {
  MemoryDocuments,
  recordedTransitionsContract,
  onFileChanges,
  type DocumentMemory,
  type RecordedTransition,
} from "@galatea/hosting/records/contracts";
import { GroupFilters, openMetricFilterStore } from "./index.ts";
import type { MetricFilterRecord } from "./metric-filters/index.ts";

const nowMs = Date.UTC(2026, 10, 23);
const dayMs = 86_400_000;
const clock = clockWithoutTimers(() => nowMs);
/** Limits with which a stream has four files, and each file has three lines of these tests. */
const limits = { streamBytesMax: 4 * 100, streamsMax: 2, groupsMax: 10 };

/** A group name that exceeds the maximum length of a directory name. */
const long = "g".repeat(300);

const locations = mkdtempSync(join(tmpdir(), "gal-log-deaths-"));
after(() => rmSync(locations, { recursive: true }));

class CrashFixture implements AsyncDisposable {
  readonly directory: string;
  readonly logs: LogStreams;
  readonly filters: GroupFilters;

  private constructor(directory: string, logs: LogStreams, filters: GroupFilters) {
    this.directory = directory;
    this.logs = logs;
    this.filters = filters;
  }

  static async open(memory: DocumentMemory, directory: string): Promise<CrashFixture> {
    const logs = createDirectoryLogStreams({ directory, clock, logger: silentLogger, ...limits });
    const store = openMetricFilterStore(new MemoryDocuments(memory), silentLogger);
    const series = { record: () => {} };
    const filters = await GroupFilters.open({ store, logs, series, logger: silentLogger });
    return new CrashFixture(directory, logs, filters);
  }

  createGroup(name: string): Promise<void> {
    return this.filters.createGroup(name, () => this.logs.createGroup(name));
  }

  deleteGroup(name: string): Promise<void> {
    return this.filters.deleteGroup(name, () => this.logs.deleteGroup(name));
  }

  /** Writes the messages as separate events, in order. */
  async put(messages: string, atMs = nowMs): Promise<void> {
    for (const message of messages.split(" ")) {
      await this.logs.append("g", "s", [{ timestampMs: atMs, message }]);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.filters[Symbol.asyncDispose]();
    await this.logs[Symbol.asyncDispose]();
  }
}

/** The state of a group: its retention in days, its filters, and the messages of each stream. */
interface FoundGroup {
  readonly days: number | null;
  readonly filters: string;
  readonly streams: Readonly<Record<string, string>>;
}

interface Found {
  readonly groups: Readonly<Record<string, FoundGroup>>;
  /** Number of directories in the folder of the log groups. */
  readonly directoryCount: number;
  readonly recordedFilterCount: number;
  /** True if a file still contains events older than the group's retention. */
  readonly hasOld: boolean;
}

function have(groups: Readonly<Record<string, Partial<FoundGroup>>>, hasOld = false): Found {
  const all = Object.entries(groups).map(([name, group]) => [name, { days: null, filters: "", streams: {}, ...group }]);
  const recordedFilterCount = Object.values(groups).reduce(
    (sum, { filters = "" }) => sum + filters.split(" ").filter(Boolean).length,
    0,
  );
  return { groups: Object.fromEntries(all), directoryCount: all.length, recordedFilterCount, hasOld };
}

async function foundGroup({ logs, filters }: CrashFixture, name: string): Promise<FoundGroup> {
  const messages = async (stream: string) => {
    const all = { startTimeMs: null, endTimeMs: null, startFromHead: true, eventsMax: 100, token: null };
    const { events } = await logs.read(name, stream, all);
    return [stream, events.map(({ message }) => message).join(" ")];
  };
  const own = (await filters.get()).list().filter(({ group }) => group === name);
  return {
    days: await logs.retentionDays(name),
    filters: own.map((filter) => filter.name).join(" "),
    streams: Object.fromEntries(await Promise.all((await logs.streamNames(name, "")).map(messages))),
  };
}

async function found(fixture: CrashFixture, { held }: DocumentMemory): Promise<Found> {
  const names = await fixture.logs.groupNames("");
  const groups = await Promise.all(names.map(async (name) => [name, await foundGroup(fixture, name)]));
  const files = (await readdir(fixture.directory, { recursive: true })).map((name) => join(fixture.directory, name));
  const texts = files.map(async (path) => ((await stat(path)).isFile() ? await readFile(path, "utf8") : ""));
  return {
    groups: Object.fromEntries(groups),
    directoryCount: (await readdir(fixture.directory)).length,
    recordedFilterCount: [...held.values()].filter(({ kind }) => kind === "metric-filter").length,
    hasOld: (await Promise.all(texts)).some((text) => text.includes("old")),
  };
}

const filter = (name: string, pattern = "x"): MetricFilterRecord => ({
  group: "g",
  name,
  pattern,
  createdMs: nowMs,
  metric: { namespace: "n", name, value: "1", defaultValue: null, unit: "None", dimensions: {} },
});

const createGroup = (fixture: CrashFixture) => fixture.createGroup("g");

async function createStream(fixture: CrashFixture): Promise<void> {
  await createGroup(fixture);
  await fixture.logs.createStream("g", "s");
}

const withFilters = async (fixture: CrashFixture): Promise<void> => {
  await createStream(fixture);
  await fixture.put("one");
  await (await fixture.filters.get()).put(filter("a"));
  await (await fixture.filters.get()).put(filter("b"));
};

/** Creates a stream with two files that are two days old, and one with the current message `more` unless it is null. */
const withOld = (more: string | null) => async (fixture: CrashFixture) => {
  await createStream(fixture);
  await fixture.put("old1 old2 old3 old4 old5 old6", nowMs - 2 * dayMs);
  if (more !== null) await fixture.put(more);
};

const streams = (s: string) => ({ g: { streams: { s } } });
const complete = have({ g: { streams: { s: "one" }, filters: "a b" } });

const rows: readonly RecordedTransition<CrashFixture, Found>[] = [
  { what: "a group is created", request: createGroup, orElse: [have({})], end: have({ g: {} }), writesMin: 4 },
  {
    what: "a group with a long name is created",
    request: (fixture) => fixture.createGroup(long),
    orElse: [have({})],
    end: have({ [long]: {} }),
    writesMin: 6,
  },
  {
    what: "a stream is created",
    given: createGroup,
    request: ({ logs }) => logs.createStream("g", "s"),
    end: have(streams("")),
    writesMin: 1,
  },
  {
    what: "a stream with a long name is created",
    given: createGroup,
    request: ({ logs }) => logs.createStream("g", long),
    orElse: [have({ g: {} })],
    end: have({ g: { streams: { [long]: "" } } }),
    writesMin: 4,
  },
  {
    what: "events are put",
    given: createStream,
    request: (fixture) => fixture.put("one two"),
    orElse: [have(streams("")), have(streams("one"))],
    end: have(streams("one two")),
    writesMin: 4,
  },
  {
    what: "events are put into a stream that is full",
    async given(fixture) {
      await createStream(fixture);
      await fixture.put("a b c d e f g h i j k l");
    },
    request: (fixture) => fixture.put("m"),
    orElse: [have(streams("a b c d e f g h i j k l")), have(streams("d e f g h i j k l"))],
    end: have(streams("d e f g h i j k l m")),
    writesMin: 2,
  },
  {
    what: "a container writes to one stream more than a group has",
    async given(fixture) {
      await createStream(fixture);
      await fixture.logs.createStream("g", "t");
      await fixture.put("one");
      await utimes(join(fixture.directory, "g", "t"), 0, 0);
    },
    async request({ logs }) {
      logs.writer("g", "u")(Buffer.from("said\n"));
      await logs[Symbol.asyncDispose]();
    },
    orElse: [{ t: "" }, {}, { u: "" }].map((more) => have({ g: { streams: { s: "one", ...more } } })),
    end: have({ g: { streams: { s: "one", u: "said" } } }),
    writesMin: 4,
  },
  {
    what: "a retention is put",
    given: createGroup,
    request: ({ logs }) => logs.setRetention("g", 1),
    orElse: [have({ g: {} })],
    end: have({ g: { days: 1 } }),
    writesMin: 3,
  },
  {
    what: "a retention is set, and older events are deleted",
    given: withOld("new"),
    request: ({ logs }) => logs.setRetention("g", 1),
    orElse: [have(streams("old1 old2 old3 old4 old5 old6 new"), true)],
    end: have({ g: { days: 1, streams: { s: "new" } } }),
    writesMin: 4,
  },
  {
    what: "a retention is put, and all goes",
    given: withOld(null),
    request: ({ logs }) => logs.setRetention("g", 1),
    orElse: [have(streams("old1 old2 old3 old4 old5 old6"), true)],
    end: have({ g: { days: 1, streams: { s: "" } } }),
    writesMin: 6,
  },
  {
    what: "a retention is removed",
    async given(fixture) {
      await createGroup(fixture);
      await fixture.logs.setRetention("g", 1);
    },
    request: ({ logs }) => logs.setRetention("g", null),
    orElse: [have({ g: { days: 1 } })],
    end: have({ g: {} }),
    writesMin: 3,
  },
  {
    what: "a stream is deleted",
    given: withFilters,
    request: ({ logs }) => logs.deleteStream("g", "s"),
    orElse: [complete],
    end: have({ g: { filters: "a b" } }),
    writesMin: 3,
  },
  {
    what: "a group is deleted, and its filters",
    given: withFilters,
    request: (fixture) => fixture.deleteGroup("g"),
    orElse: [complete],
    end: have({}),
    writesMin: 6,
  },
  {
    what: "a group is deleted and created again",
    given: withFilters,
    async request(fixture) {
      await fixture.deleteGroup("g");
      await createGroup(fixture);
    },
    orElse: [complete, have({})],
    end: have({ g: {} }),
    writesMin: 9,
  },
  {
    what: "a filter is put",
    given: createGroup,
    request: async ({ filters }) => (await filters.get()).put(filter("a")),
    end: have({ g: { filters: "a" } }),
    writesMin: 1,
  },
  {
    what: "a filter is deleted",
    given: withFilters,
    request: async ({ filters }) => (await filters.get()).delete("g", "a"),
    end: have({ g: { streams: { s: "one" }, filters: "b" } }),
    writesMin: 1,
  },
];

type Move = `${"make" | "delete"} ${"group" | "stream"}` | "write" | "keep" | "prune" | "put filter" | "delete filter";

recordedTransitionsContract<CrashFixture, string, Found, Move>({
  name: "log group",
  kinds: ["metric-filter"],
  open: (memory, left) => CrashFixture.open(memory, left ?? mkdtempSync(join(locations, "logs-"))),
  outside({ directory }) {
    const copy = mkdtempSync(join(locations, "logs-"));
    cpSync(directory, copy, { recursive: true });
    return copy;
  },
  watch: ({ directory }, changed) => onFileChanges(directory, changed),
  settled: ({ logs }) => logs.prune(),
  found,
  steps: {
    "make group": ["a group is created", "a group with a long name is created"],
    "make stream": ["a stream is created", "a stream with a long name is created"],
    write: [
      "events are put",
      "events are put into a stream that is full",
      "a container writes to one stream more than a group has",
    ],
    keep: ["a retention is put", "a retention is removed"],
    prune: ["a retention is set, and older events are deleted", "a retention is put, and all goes"],
    "delete stream": ["a stream is deleted"],
    "delete group": ["a group is deleted, and its filters", "a group is deleted and created again"],
    "put filter": ["a filter is put"],
    "delete filter": ["a filter is deleted"],
  },
  rows,
});
