import { datatypeOfNumber, type Datatype } from "../tensor/index.ts";
import { ControlKind, type SequenceBatchingMessage } from "./message.ts";

/** An input that a sequence scheduler makes, and that tells a model where in its sequence a request stands. */
export interface ControlTensor {
  readonly name: string;
  readonly tells: "start" | "ready" | "end" | "correlation id";
  readonly datatype: Datatype;
}

/** A tensor that a scheduler keeps between the requests of a sequence: what was this output is the next request's input. */
export interface StateTensor {
  readonly inputName: string;
  readonly outputName: string;
  readonly datatype: Datatype;
  readonly dims: readonly number[];
}

export interface SequenceConfig {
  readonly kind: "sequence";
  readonly controls: readonly ControlTensor[];
  readonly states: readonly StateTensor[];
}

const told: Readonly<Record<ControlKind, ControlTensor["tells"]>> = {
  [ControlKind.CONTROL_SEQUENCE_START]: "start",
  [ControlKind.CONTROL_SEQUENCE_READY]: "ready",
  [ControlKind.CONTROL_SEQUENCE_END]: "end",
  [ControlKind.CONTROL_SEQUENCE_CORRID]: "correlation id",
};

/** What of it has no datatype is left out: such a configuration is refused. */
export function sequenceConfig(sequence: SequenceBatchingMessage): SequenceConfig {
  return {
    kind: "sequence",
    controls: sequence.controlInput.flatMap(({ name, control }) =>
      control.flatMap((each): ControlTensor[] => {
        const tells = told[each.kind];
        const datatype = tells === "correlation id" ? datatypeOfNumber(each.dataType) : flagDatatype(each);
        return datatype === undefined ? [] : [{ name, tells, datatype }];
      }),
    ),
    states: sequence.state.flatMap(({ inputName, outputName, dataType, dims }): StateTensor[] => {
      const datatype = datatypeOfNumber(dataType);
      return datatype === undefined ? [] : [{ inputName, outputName, datatype, dims: dims.map(Number) }];
    }),
  };
}

/** A flag is of the datatype that its two values are given in. */
function flagDatatype(
  control: SequenceBatchingMessage["controlInput"][number]["control"][number],
): "INT32" | "FP32" | "BOOL" | undefined {
  if (control.int32FalseTrue.length > 0) return "INT32";
  if (control.fp32FalseTrue.length > 0) return "FP32";
  return control.boolFalseTrue.length > 0 ? "BOOL" : undefined;
}
