/**
 * The platform is killed after every write of an alarm's transitions. The next run must have the state and the history,
 * and must have run the actions.
 */
import { silentLogger } from "@galatea/base";
import { clockWithoutTimers } from "@galatea/base/core/clock-without-timers-fixture.ts";
import {
  MemoryDocuments,
  recordedTransitionsContract,
  type DocumentMemory,
  type RecordedTransition,
} from "../records/contracts/index.ts";
import { alarmLimits, Alarms } from "./alarms.ts";
import type { AlarmDefinition } from "./alarm.ts";
import { commonAlarmFields, sumAlarm } from "./sum-alarm-fixture.ts";

const minuteMs = 60_000;
const startMs = Date.UTC(2026, 10, 22);
const never = new AbortController().signal;
const topic = "arn:aws:sns:r:1:told";

const facts = { actions: { OK: [topic], ALARM: [topic], INSUFFICIENT_DATA: [] }, configuredMs: startMs };
const errors = sumAlarm("errors", facts);
const above: AlarmDefinition = {
  ...commonAlarmFields,
  ...facts,
  kind: "composite",
  name: "above",
  rule: 'ALARM("errors")',
};

/** The state outside of the platform: the time, the metric's value, and the last notification of each alarm. */
interface Outside {
  readonly nowMs: number;
  readonly value: number;
  readonly told: readonly string[];
}

class World implements AsyncDisposable {
  alarms!: Alarms;
  nowMs: number;
  /** The metric's value in each minute. */
  value: number;
  readonly told: string[];

  constructor({ nowMs, value, told }: Outside) {
    this.nowMs = nowMs;
    this.value = value;
    this.told = [...told];
  }

  static async open(memory: DocumentMemory, outside: Outside | null): Promise<World> {
    const world = new World(outside ?? { nowMs: startMs, value: 1, told: [] });
    const clock = clockWithoutTimers(() => world.nowMs);
    world.alarms = await Alarms.open({
      documents: new MemoryDocuments(memory),
      readValues: (_, range) => Promise.resolve(new Map([[range.endMs - minuteMs, world.value]])),
      actions: (arn) =>
        arn !== topic
          ? null
          : {
              repeats: false,
              run: ({ definition, status }) =>
                Promise.resolve(void world.told.push(`${definition.name} ${status.state}`)),
            },
      limits: alarmLimits,
      clock,
      logger: silentLogger,
    });
    world.alarms.resume();
    return world;
  }

  /** Advances the clock by five minutes and evaluates the alarms after each. */
  async live(): Promise<void> {
    for (let minute = 0; minute < 5; minute += 1) {
      this.nowMs += minuteMs;
      await this.alarms.evaluateAll(never);
      await this.alarms.whenActionsEnd();
    }
  }

  async found(): Promise<Found> {
    const alarms: Record<string, string> = {};
    for (const { definition, status } of this.alarms.list()) {
      const history = await this.alarms.history(definition.name);
      const kinds = history.map(({ kind, summary }) => (kind === "Action" ? summary : kind));
      alarms[definition.name] = [status.state, definition.description, ...new Set(kinds)].join(" ");
    }
    // Actions run at least once: an action whose result was not recorded before the kill runs again, so that duplicates
    // are removed.
    return { alarms, told: [...new Set(this.told)].toSorted() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.alarms[Symbol.asyncDispose]();
  }
}

interface Found {
  readonly alarms: Readonly<Record<string, string>>;
  readonly told: readonly string[];
}

const acted = `Successfully executed action ${topic}`;
const made = `ConfigurationUpdate StateUpdate ${acted}`;
const quiet: Found = { alarms: { errors: `OK  ${made}` }, told: ["errors OK"] };
const loud: Found = { alarms: { errors: `ALARM  ${made}` }, told: ["errors ALARM", "errors OK"] };
const both: Found = {
  alarms: { above: `OK  ${made}`, errors: `OK  ${made}` },
  told: ["above OK", "errors OK"],
};
const gone: Found = { alarms: {}, told: ["errors OK"] };

const put = (world: World) => world.alarms.put(errors);

async function putBoth(world: World): Promise<void> {
  await put(world);
  await world.alarms.put(above);
}

const rows: readonly RecordedTransition<World, Found>[] = [
  { what: "an alarm is created", ask: put, orElse: [{ alarms: {}, told: [] }], end: quiet, writesMin: 3 },
  {
    what: "it is configured anew",
    given: put,
    ask: (world) => world.alarms.put({ ...errors, description: "new" }),
    orElse: [quiet],
    end: { ...quiet, alarms: { errors: `OK new ${made}` } },
    writesMin: 1,
  },
  {
    what: "it is amended",
    given: put,
    ask: (world) => world.alarms.amend("errors", (definition) => ({ ...definition, description: "new" })),
    orElse: [quiet],
    end: { ...quiet, alarms: { errors: `OK new ${made}` } },
    writesMin: 1,
  },
  {
    what: "the alarm goes into ALARM",
    given: put,
    async ask(world) {
      world.value = 100;
      await world.live();
    },
    end: loud,
    writesMin: 2,
  },
  {
    what: "its state is set, and it is looked at again",
    given: put,
    ask: (world) => world.alarms.setState("errors", "ALARM", "for a test", null),
    orElse: [quiet],
    end: { alarms: { errors: `OK  ${made}` }, told: ["errors ALARM", "errors OK"] },
    writesMin: 2,
  },
  {
    what: "a composite alarm is created",
    given: put,
    ask: (world) => world.alarms.put(above),
    orElse: [quiet],
    end: both,
    writesMin: 3,
  },
  {
    what: "a composite alarm goes into ALARM",
    given: putBoth,
    async ask(world) {
      world.value = 100;
      await world.live();
    },
    end: {
      alarms: { above: `ALARM  ${made}`, errors: `ALARM  ${made}` },
      told: ["above ALARM", "above OK", "errors ALARM", "errors OK"],
    },
    writesMin: 4,
  },
  {
    what: "it is deleted",
    given: put,
    ask: (world) => world.alarms.delete(["errors"]),
    orElse: [quiet],
    end: gone,
    writesMin: 1,
  },
  {
    what: "an alarm is deleted with the one that reads it",
    given: putBoth,
    ask: (world) => world.alarms.delete(["errors", "above"]),
    orElse: [both],
    end: { alarms: {}, told: ["above OK", "errors OK"] },
    writesMin: 1,
  },
];

recordedTransitionsContract<World, Outside, Found, "put" | "amend" | "evaluate" | "set" | "delete">({
  name: "alarm",
  kinds: null,
  open: (memory, outside) => World.open(memory, outside),
  outside: ({ nowMs, value, told }) => ({ nowMs, value, told: [...told] }),
  settled: (world) => world.live(),
  found: (world) => world.found(),
  moves: {
    put: ["an alarm is created", "it is configured anew", "a composite alarm is created"],
    amend: ["it is amended"],
    evaluate: ["the alarm goes into ALARM", "a composite alarm goes into ALARM"],
    set: ["its state is set, and it is looked at again"],
    delete: ["it is deleted", "an alarm is deleted with the one that reads it"],
  },
  rows,
});
