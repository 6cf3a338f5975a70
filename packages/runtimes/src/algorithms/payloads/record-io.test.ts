import assert from "node:assert/strict";
import { test } from "node:test";
import { recordIoFrame } from "@galatea/base";
import { recordIoExamples } from "./record-io.ts";

const examplesOf = (record: string) => recordIoExamples(recordIoFrame(Buffer.from(record, "hex")));

test("a RecordIO record's features are read from packed and unpacked fields, with and without keys and a shape", () => {
  const sparse = "0a220a0676616c756573121812160a0c0000803f000000400000404012030105091a0114";
  assert.deepEqual(examplesOf(sparse), [{ kind: "sparse", values: [1, 2, 3], keys: [1, 5, 9], columnCount: 20 }]);
  const integers = "0a1c0a0676616c75657312123a100a0c0102ffffffffffffffffff010805";
  assert.deepEqual(examplesOf(integers), [{ kind: "dense", values: [1, 2, -1, 5] }]);
});

test("a RecordIO record that is not a valid protobuf message is rejected", () => {
  for (const record of [
    "0a220a0676616c756573121810160a0c0000803f000000400000404012030105091a0114",
    "0a1c0a0676616c756573121212100a0c0150ffffffffffffffffff010805",
    "0a220a0676616c756573121812160a0d0000803f000000400000404012030105091a0114",
    "0a220a0676616c7565731218",
    "00",
  ]) {
    assert.throws(() => examplesOf(record), RangeError, record);
  }
});
