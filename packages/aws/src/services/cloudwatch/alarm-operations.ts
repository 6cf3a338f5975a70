import type { ResolveAlarmAction, AlarmRecord, Alarms } from "@galatea/hosting/alarms";
import { alarmNamesInRule, parseAlarmRule } from "@galatea/hosting/alarms";
import { AwsError, type Clock } from "@galatea/base";
import type { CloudwatchInputs, CloudwatchOperations } from "../../spec/gen/cloudwatch.ts";
import { pageAfter, type CallContext, type OperationRows, type PageQuery } from "../../wire/index.ts";
import { parseCompositeAlarm, parseMetricAlarm } from "./alarm-definitions.ts";
import { alarmType, describeCompositeAlarm, describeHistoryItem, describeMetricAlarm } from "./alarm-descriptions.ts";
import { parseDimensions } from "./dimensions.ts";
import { invalidNextToken } from "./next-tokens.ts";

export interface AlarmOperationsDependencies {
  readonly alarms: Alarms;
  readonly alarmActions: ResolveAlarmAction;
  readonly clock: Clock;
}

const recordsMax = 100;
const tagsMax = 50;

export function alarmOperations(dependencies: AlarmOperationsDependencies) {
  const { alarms, alarmActions: actions, clock } = dependencies;
  const facing = (name: string, context: CallContext) => ({
    arn: alarmArn(name, context),
    nowMs: clock.epochMs(),
    actions,
  });
  const setActions = (isEnabled: boolean) => async (input: { readonly AlarmNames: readonly string[] }) => {
    // Unknown names are ignored, as in CloudWatch.
    for (const name of input.AlarmNames) {
      await alarms.amend(name, (definition) => ({ ...definition, actionsEnabled: isEnabled }));
    }
    return {};
  };
  return {
    PutMetricAlarm: {
      async handle(input, context) {
        await alarms.put(withTags(alarms, parseMetricAlarm(input, facing(input.AlarmName, context))));
        return {};
      },
    },
    PutCompositeAlarm: {
      async handle(input, context) {
        await alarms.put(withTags(alarms, parseCompositeAlarm(input, facing(input.AlarmName, context))));
        return {};
      },
    },
    DescribeAlarms: {
      handle: async (input) => describeAlarms(alarms, input),
    },
    DescribeAlarmsForMetric: {
      handle: async (input) => alarmsForMetric(alarms, input),
    },
    DescribeAlarmHistory: {
      handle: (input, { nextTick }) => alarmHistory(alarms, input, nextTick),
    },
    DeleteAlarms: {
      async handle({ AlarmNames }) {
        await alarms.delete(AlarmNames);
        return {};
      },
    },
    SetAlarmState: {
      async handle({ AlarmName, StateValue, StateReason, StateReasonData }) {
        checkJson(StateReasonData);
        await alarms.setState(AlarmName, StateValue, StateReason, StateReasonData ?? null);
        return {};
      },
    },
    EnableAlarmActions: { handle: setActions(true) },
    DisableAlarmActions: { handle: setActions(false) },
    ...tagOperations(alarms),
  } satisfies Partial<OperationRows<CloudwatchOperations>>;
}

function tagOperations(alarms: Alarms) {
  const resource = (input: { readonly ResourceARN: string }) => input.ResourceARN;
  return {
    TagResource: {
      resource,
      async handle({ ResourceARN, Tags }) {
        const { definition } = alarmOfArn(alarms, ResourceARN);
        const argument = new Map(Tags.map(({ Key, Value }) => [Key, Value]));
        await alarms.amend(definition.name, (known) => {
          const all = new Map([...known.tags.map(({ key, value }) => [key, value] as const), ...argument]);
          if (all.size > tagsMax)
            throw new AwsError("InvalidParameterValue", `An alarm can have at most ${tagsMax} tags.`);
          return { ...known, tags: [...all].map(([key, value]) => ({ key, value })) };
        });
        return {};
      },
    },
    UntagResource: {
      resource,
      async handle({ ResourceARN, TagKeys }) {
        const { definition } = alarmOfArn(alarms, ResourceARN);
        const going = new Set(TagKeys);
        await alarms.amend(definition.name, (known) => ({
          ...known,
          tags: known.tags.filter(({ key }) => !going.has(key)),
        }));
        return {};
      },
    },
    ListTagsForResource: {
      resource,
      handle: async ({ ResourceARN }) => ({
        Tags: alarmOfArn(alarms, ResourceARN).definition.tags.map(({ key, value }) => ({ Key: key, Value: value })),
      }),
    },
  } satisfies Partial<OperationRows<CloudwatchOperations>>;
}

/**
 * Returns the definition with its tags. A new alarm gets the tags of the request; a changed alarm keeps its existing
 * tags.
 */
function withTags<Definition extends AlarmRecord["definition"]>(alarms: Alarms, definition: Definition): Definition {
  const known = alarms.get(definition.name);
  return known === null ? definition : { ...definition, tags: known.definition.tags };
}

function describeAlarms(alarms: Alarms, input: CloudwatchInputs["DescribeAlarmsInput"]) {
  const { AlarmNames: names, AlarmNamePrefix: prefix, ActionPrefix: action, StateValue: state } = input;
  if (names !== undefined && prefix !== undefined) {
    throw new AwsError("ValidationError", "AlarmNames and AlarmNamePrefix must not be specified together.");
  }
  const types = input.AlarmTypes ?? ["MetricAlarm"];
  const named = names === undefined ? null : new Set(names);
  const related = relatedTo(alarms, input);
  const found = alarms
    .list()
    .filter(
      ({ definition, status }) =>
        types.includes(alarmType(definition)) &&
        (named === null || named.has(definition.name)) &&
        (related === null || related.has(definition.name)) &&
        definition.name.startsWith(prefix ?? "") &&
        (state === undefined || status.state === state) &&
        (action === undefined ||
          Object.values(definition.actions).some((arns) => arns.some((arn) => arn.startsWith(action)))),
    );
  const { page, next } = pageAfter(found, ({ definition }) => definition.name, pageQuery("DescribeAlarms", input));
  return {
    MetricAlarms: page.flatMap((record) =>
      record.definition.kind === "metric" ? [describeMetricAlarm(record.definition, record)] : [],
    ),
    CompositeAlarms: page.flatMap((record) =>
      record.definition.kind === "composite" ? [describeCompositeAlarm(record.definition, record)] : [],
    ),
    NextToken: next,
  };
}

/**
 * Returns the alarms that a composite alarm reads, or the composite alarms that read an alarm. Returns null if the
 * request asks for neither.
 */
function relatedTo(alarms: Alarms, input: CloudwatchInputs["DescribeAlarmsInput"]): ReadonlySet<string> | null {
  const { ChildrenOfAlarmName: parent, ParentsOfAlarmName: child } = input;
  if (parent !== undefined) {
    const found = alarms.get(parent)?.definition;
    return new Set(found?.kind === "composite" ? alarmNamesInRule(parseAlarmRule(found.rule)) : []);
  }
  return child === undefined ? null : new Set(alarms.parentsOf(child));
}

function alarmsForMetric(alarms: Alarms, input: CloudwatchInputs["DescribeAlarmsForMetricInput"]) {
  const identity = (dimensions: readonly { readonly name: string; readonly value: string }[]) =>
    JSON.stringify(
      dimensions.map(({ name, value }) => JSON.stringify([name, value])).toSorted((a, b) => (a < b ? -1 : 1)),
    );
  const dimensions = identity(parseDimensions(input.Dimensions));
  const statistic = input.Statistic ?? input.ExtendedStatistic;
  const found = alarms.list().flatMap((record) => {
    const { definition } = record;
    if (definition.kind !== "metric" || definition.watched.kind !== "metric") return [];
    const { metric, unit, periodMs, statistic: watched } = definition.watched;
    const isRequested =
      metric.namespace === input.Namespace &&
      metric.metricName === input.MetricName &&
      identity(metric.dimensions) === dimensions &&
      (statistic === undefined || statistic === watched) &&
      (input.Unit === undefined || input.Unit === unit) &&
      (input.Period === undefined || input.Period * 1000 === periodMs);
    return isRequested ? [describeMetricAlarm(definition, record)] : [];
  });
  return { MetricAlarms: found };
}

async function alarmHistory(
  alarms: Alarms,
  input: CloudwatchInputs["DescribeAlarmHistoryInput"],
  nextTick: () => Promise<void>,
) {
  const types = input.AlarmTypes ?? ["MetricAlarm", "CompositeAlarm"];
  const requested = alarms
    .listWithDeleted()
    .filter(({ name }) => input.AlarmName === undefined || input.AlarmName === name);
  const [fromMs, toMs] = [input.StartDate?.getTime() ?? 0, input.EndDate?.getTime() ?? Infinity];
  const found = [];
  for (const definition of requested) {
    if (!types.includes(alarmType(definition))) continue;
    await nextTick();
    for (const [number, item] of (await alarms.history(definition.name)).entries()) {
      if (item.atMs < fromMs || item.atMs > toMs) continue;
      if (input.HistoryItemType !== undefined && item.kind !== input.HistoryItemType) continue;
      const location = `${String(item.atMs).padStart(15, "0")} ${definition.name} ${String(number).padStart(6, "0")}`;
      found.push({ place: location, printed: describeHistoryItem(definition, item) });
    }
  }
  const isAscending = input.ScanBy === "TimestampAscending";
  const ordered = found.toSorted((a, b) => (a.place < b.place === isAscending ? -1 : 1));
  const { page, next } = pageAfter(ordered, ({ place }) => place, {
    ...pageQuery("DescribeAlarmHistory", input),
    isDescending: !isAscending,
  });
  return { AlarmHistoryItems: page.map(({ printed }) => printed), NextToken: next };
}

function pageQuery(operation: string, input: { readonly MaxRecords?: number; readonly NextToken?: string }): PageQuery {
  const { MaxRecords: countMax, NextToken: token } = input;
  return { countMax, pageMax: recordsMax, token, listing: { operation, input }, refusal: invalidNextToken };
}

function alarmArn(name: string, { region, accountId }: CallContext): string {
  return `arn:aws:cloudwatch:${region}:${accountId}:alarm:${name}`;
}

function alarmOfArn(alarms: Alarms, arn: string): AlarmRecord {
  const name = /^arn:[^:]*:cloudwatch:[^:]*:[^:]*:alarm:(.+)$/s.exec(arn)?.[1];
  const found = name === undefined ? null : alarms.get(name);
  if (found === null) throw new AwsError("ResourceNotFoundException", `There is no alarm ${arn}.`);
  return found;
}

function checkJson(text: string | undefined): void {
  if (text === undefined) return;
  try {
    JSON.parse(text);
  } catch {
    throw new AwsError("InvalidFormat", "StateReasonData must be JSON.");
  }
}
