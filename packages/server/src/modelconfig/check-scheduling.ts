import {
  ControlKind,
  DataType,
  TimeoutAction,
  type ModelConfigMessage,
  type QueuePolicyMessage,
  type SequenceBatchingMessage,
} from "./message.ts";
import { throwInvalidConfig } from "./invalid-config.ts";

export function checkDynamicBatching(message: ModelConfigMessage): void {
  const choice = message.schedulingChoice;
  if (choice.case !== "dynamicBatching") return;
  const dynamic = choice.value;
  const model = message.name;
  for (const size of dynamic.preferredBatchSize) {
    if (size <= 0) throwInvalidConfig(`dynamic batching preferred size must be positive for ${model}`);
    if (size > message.maxBatchSize)
      throwInvalidConfig(`dynamic batching preferred size must be <= max batch size for ${model}`);
  }
  const levels = dynamic.priorityLevels;
  if (levels > 0n) {
    if (dynamic.defaultPriorityLevel === 0n || dynamic.defaultPriorityLevel > levels) {
      throwInvalidConfig(`default priority level must be in range [1, ${levels}] for ${model}`);
    }
    for (const level of Object.keys(dynamic.priorityQueuePolicy)) {
      if (BigInt(level) === 0n || BigInt(level) > levels) {
        throwInvalidConfig(`priority queue policy must have priority level in range [1, ${levels}] for ${model}`);
      }
    }
  }
  if (dynamic.preserveOrdering && levels > 1n) {
    throwInvalidConfig(`Only one priority level is allowed when 'preserve_ordering' is true for ${model}`);
  }
  const policies = [dynamic.defaultQueuePolicy, ...Object.values(dynamic.priorityQueuePolicy)];
  if (dynamic.preserveOrdering && policies.some((policy) => policy !== undefined && delays(policy)))
    throwInvalidConfig(
      `Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for ${model}`,
    );
}

/** Returns whether a queue policy delays requests that have timed out; without a timeout no request is delayed. */
function delays({ timeoutAction, defaultTimeoutMicroseconds }: QueuePolicyMessage): boolean {
  return timeoutAction === TimeoutAction.DELAY && defaultTimeoutMicroseconds !== 0n;
}

export function checkSequenceBatching(message: ModelConfigMessage): void {
  const choice = message.schedulingChoice;
  if (choice.case !== "sequenceBatching") return;
  checkControls(choice.value, message.name);
  checkStates(choice.value);
  const strategy = choice.value.strategyChoice;
  if (strategy.case === "oldest") {
    for (const size of strategy.value.preferredBatchSize) {
      if (size <= 0) throwInvalidConfig(`sequence batching preferred batch size must be positive for ${message.name}`);
      if (size > message.maxBatchSize) {
        throwInvalidConfig(`sequence batching preferred batch size must be <= max batch size for ${message.name}`);
      }
    }
  }
  if (strategy.case === "direct") {
    const utilization = strategy.value.minimumSlotUtilization;
    if (!(utilization >= 0 && utilization <= 1)) {
      throwInvalidConfig(`sequence batching minimum slot utilization must be in range (0.0, 1.0] for ${message.name}`);
    }
  }
}

const correlationTypes = new Set([
  DataType.TYPE_UINT64,
  DataType.TYPE_INT64,
  DataType.TYPE_UINT32,
  DataType.TYPE_INT32,
  DataType.TYPE_STRING,
]);

function checkControls(sequence: SequenceBatchingMessage, model: string): void {
  const names = new Set<string>();
  const kinds = new Set<ControlKind>();
  for (const input of sequence.controlInput) {
    if (input.name === "") throwInvalidConfig(`sequence batching control tensor must have a name for ${model}`);
    if (names.has(input.name) || input.control.length > 1) {
      throwInvalidConfig(
        `sequence batching control tensor '${input.name}' is specified for multiple control kinds for ${model}`,
      );
    }
    names.add(input.name);
    for (const control of input.control) {
      const kind = ControlKind[control.kind];
      if (kinds.has(control.kind))
        throwInvalidConfig(`sequence batching specifies multiple ${kind} tensors for ${model}`);
      kinds.add(control.kind);
      if (control.kind === ControlKind.CONTROL_SEQUENCE_CORRID) checkCorrelation(control.dataType, model);
      else checkFalseTrue(control, model);
    }
  }
}

function checkCorrelation(dataType: DataType, model: string): void {
  if (correlationTypes.has(dataType)) return;
  throwInvalidConfig(
    `unexpected data type for control CONTROL_SEQUENCE_CORRID for ${model}. ` +
      "Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING",
  );
}

function checkFalseTrue(
  control: SequenceBatchingMessage["controlInput"][number]["control"][number],
  model: string,
): void {
  const kind = ControlKind[control.kind];
  const input = (
    [
      ["int32_false_true", control.int32FalseTrue],
      ["fp32_false_true", control.fp32FalseTrue],
      ["bool_false_true", control.boolFalseTrue],
    ] as const
  ).filter(([, values]) => values.length > 0);
  if (input.length === 0) {
    throwInvalidConfig(
      `sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for ${kind} for ${model}`,
    );
  }
  if (input.length > 1) {
    throwInvalidConfig(
      `sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' for ${kind} for ${model}`,
    );
  }
  const [name, values] = input[0]!;
  if (values.length !== 2)
    throwInvalidConfig(`sequence batching control '${name}' must have exactly 2 entries for ${kind} for ${model}`);
}

function checkStates(sequence: SequenceBatchingMessage): void {
  const names = new Set<string>();
  for (const state of sequence.state) {
    if (names.has(state.inputName))
      throwInvalidConfig(`State input name '${state.inputName}' specified more than once.`);
    names.add(state.inputName);
    for (const initial of state.initialState) {
      if (initial.name === "") {
        throwInvalidConfig(`Field 'name' must be set when using initial_state for state input '${state.inputName}'.`);
      }
      if (initial.dataType !== state.dataType) {
        throwInvalidConfig(
          `The data type used for 'initial_state' field of state '${state.inputName}' does not match the state data type.`,
        );
      }
      if (initial.dims.some((dim) => dim < 0n)) {
        throwInvalidConfig(
          `'initial_state' field for state input name '${state.inputName}' contains variable dimensions.`,
        );
      }
    }
  }
}
