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
interface ExternalState {
  readonly nowMs: number;
  readonly value: number;
  readonly reported: readonly string[];
}

class CrashFixture implements AsyncDisposable {
  alarms!: Alarms;
  nowMs: number;
  /** The metric's value in each minute. */
  value: number;
  readonly reported: string[];

  constructor({ nowMs, value, reported: told }: ExternalState) {
    this.nowMs = nowMs;
    this.value = value;
    this.reported = [...told];
  }

  static async open(memory: DocumentMemory, outside: ExternalState | null): Promise<CrashFixture> {
    const fixture = new CrashFixture(outside ?? { nowMs: startMs, value: 1, reported: [] });
    const clock = clockWithoutTimers(() => fixture.nowMs);
    fixture.alarms = await Alarms.open({
      documents: new MemoryDocuments(memory),
      readValues: (_, range) => Promise.resolve(new Map([[range.endMs - minuteMs, fixture.value]])),
      actions: (arn) =>
        arn !== topic
          ? null
          : {
              repeats: false,
              run: ({ definition, status }) =>
                Promise.resolve(void fixture.reported.push(`${definition.name} ${status.state}`)),
            },
      limits: alarmLimits,
      clock,
      logger: silentLogger,
    });
    fixture.alarms.resume();
    return fixture;
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
    return { alarms, reported: [...new Set(this.reported)].toSorted() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.alarms[Symbol.asyncDispose]();
  }
}

interface Found {
  readonly alarms: Readonly<Record<string, string>>;
  readonly reported: readonly string[];
}

const acted = `Successfully executed action ${topic}`;
const generated = `ConfigurationUpdate StateUpdate ${acted}`;
const quiet: Found = { alarms: { errors: `OK  ${generated}` }, reported: ["errors OK"] };
const loud: Found = { alarms: { errors: `ALARM  ${generated}` }, reported: ["errors ALARM", "errors OK"] };
const both: Found = {
  alarms: { above: `OK  ${generated}`, errors: `OK  ${generated}` },
  reported: ["above OK", "errors OK"],
};
const removed: Found = { alarms: {}, reported: ["errors OK"] };

const put = (fixture: CrashFixture) => fixture.alarms.put(errors);

async function putBoth(fixture: CrashFixture): Promise<void> {
  await put(fixture);
  await fixture.alarms.put(above);
}

const rows: readonly RecordedTransition<CrashFixture, Found>[] = [
  { what: "an alarm is created", request: put, orElse: [{ alarms: {}, reported: [] }], end: quiet, writesMin: 3 },
  {
    what: "an alarm is put again",
    given: put,
    request: (fixture) => fixture.alarms.put({ ...errors, description: "new" }),
    orElse: [quiet],
    end: { ...quiet, alarms: { errors: `OK new ${generated}` } },
    writesMin: 1,
  },
  {
    what: "an alarm is changed",
    given: put,
    request: (fixture) => fixture.alarms.amend("errors", (definition) => ({ ...definition, description: "new" })),
    orElse: [quiet],
    end: { ...quiet, alarms: { errors: `OK new ${generated}` } },
    writesMin: 1,
  },
  {
    what: "the alarm goes into ALARM",
    given: put,
    async request(fixture) {
      fixture.value = 100;
      await fixture.live();
    },
    end: loud,
    writesMin: 2,
  },
  {
    what: "an alarm's state is set, and the alarm is evaluated again",
    given: put,
    request: (fixture) => fixture.alarms.setState("errors", "ALARM", "for a test", null),
    orElse: [quiet],
    end: { alarms: { errors: `OK  ${generated}` }, reported: ["errors ALARM", "errors OK"] },
    writesMin: 2,
  },
  {
    what: "a composite alarm is created",
    given: put,
    request: (fixture) => fixture.alarms.put(above),
    orElse: [quiet],
    end: both,
    writesMin: 3,
  },
  {
    what: "a composite alarm goes into ALARM",
    given: putBoth,
    async request(fixture) {
      fixture.value = 100;
      await fixture.live();
    },
    end: {
      alarms: { above: `ALARM  ${generated}`, errors: `ALARM  ${generated}` },
      reported: ["above ALARM", "above OK", "errors ALARM", "errors OK"],
    },
    writesMin: 4,
  },
  {
    what: "an alarm is deleted",
    given: put,
    request: (fixture) => fixture.alarms.delete(["errors"]),
    orElse: [quiet],
    end: removed,
    writesMin: 1,
  },
  {
    what: "an alarm is deleted with the one that reads it",
    given: putBoth,
    request: (fixture) => fixture.alarms.delete(["errors", "above"]),
    orElse: [both],
    end: { alarms: {}, reported: ["above OK", "errors OK"] },
    writesMin: 1,
  },
];

recordedTransitionsContract<CrashFixture, ExternalState, Found, "put" | "amend" | "evaluate" | "set" | "delete">({
  name: "alarm",
  kinds: null,
  open: (memory, outside) => CrashFixture.open(memory, outside),
  outside: ({ nowMs, value, reported: told }) => ({ nowMs, value, reported: [...told] }),
  settled: (fixture) => fixture.live(),
  found: (fixture) => fixture.found(),
  steps: {
    put: ["an alarm is created", "an alarm is put again", "a composite alarm is created"],
    amend: ["an alarm is changed"],
    evaluate: ["the alarm goes into ALARM", "a composite alarm goes into ALARM"],
    set: ["an alarm's state is set, and the alarm is evaluated again"],
    delete: ["an alarm is deleted", "an alarm is deleted with the one that reads it"],
  },
  rows,
});
