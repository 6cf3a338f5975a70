import assert from "node:assert/strict";
import { test } from "node:test";
import { completeConfig, parseConfigText } from "../modelconfig/index.ts";
import { modelFacts } from "./model-facts.ts";

const factsOf = (text: string) =>
  modelFacts(
    completeConfig(
      parseConfigText(
        `backend: "python" max_batch_size: 4
        input { name: "X" data_type: TYPE_FP32 dims: [ 2 ] }
        output { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] }
        ${text}`,
        "config.pbtxt",
      ),
      { directoryName: "m", servedName: "m", versionEntries: ["model.py"], gpuCount: 0 },
    ),
  );

test("what a sequence scheduler makes and keeps is known of a model, apart from what clients send", () => {
  const { controls, states, inputByName, requiredInputCount } = factsOf(`sequence_batching {
    control_input { name: "START" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
    control_input { name: "END" control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } }
    control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] } }
    control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
    state { input_name: "IN" output_name: "OUT" data_type: TYPE_INT32 dims: [ -1, 3 ] }
  }`);
  assert.deepEqual(controls, [
    { name: "START", tells: "start", datatype: "FP32" },
    { name: "END", tells: "end", datatype: "INT32" },
    { name: "READY", tells: "ready", datatype: "BOOL" },
    { name: "CORRID", tells: "correlation id", datatype: "UINT64" },
  ]);
  assert.deepEqual(states, [{ inputName: "IN", outputName: "OUT", datatype: "INT32", dims: [-1, 3] }]);
  assert.deepEqual([[...inputByName.keys()], requiredInputCount], [["X"], 1]);
});

test("a model without sequences has neither", () => {
  const { controls, states } = factsOf("dynamic_batching { }");
  assert.deepEqual([controls, states], [[], []]);
});
