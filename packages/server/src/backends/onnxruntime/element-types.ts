import { InferenceError } from "@galatea/base";
import type { OnnxValueInfo } from "../../native/index.ts";
import type { Datatype } from "../../tensor/index.ts";

/** Datatypes by ONNXTensorElementDataType. Types that the protocols do not support (complex, float8, int4) have no entry. */
const byElementType: ReadonlyMap<number, Datatype> = new Map([
  [1, "FP32"],
  [2, "UINT8"],
  [3, "INT8"],
  [4, "UINT16"],
  [5, "INT16"],
  [6, "INT32"],
  [7, "INT64"],
  [8, "BYTES"],
  [9, "BOOL"],
  [10, "FP16"],
  [11, "FP64"],
  [12, "UINT32"],
  [13, "UINT64"],
  [16, "BF16"],
]);

const onnxTypeNames = ["UNKNOWN", "TENSOR", "SEQUENCE", "MAP", "OPAQUE", "SPARSETENSOR", "OPTIONAL"];
const onnxTensor = 1;

/**
 * Returns the datatype of a model's input or output. Throws UNSUPPORTED when the value is not a tensor or its element type is not
 * supported.
 */
export function datatypeOfValue(modelName: string, value: OnnxValueInfo): Datatype {
  if (value.onnxType !== onnxTensor) {
    const typeName = `ONNX_TYPE_${onnxTypeNames[value.onnxType] ?? value.onnxType}`;
    throw new InferenceError(
      "UNSUPPORTED",
      `Unsupported ONNX Type '${typeName}' for I/O '${value.name}', expected 'ONNX_TYPE_TENSOR'.`,
    );
  }
  const datatype = byElementType.get(value.elementType);
  if (datatype === undefined) {
    throw new InferenceError(
      "UNSUPPORTED",
      `unsupported datatype (ONNX element type ${value.elementType}) for tensor '${value.name}' of model '${modelName}'`,
    );
  }
  return datatype;
}

/** Returns the datatype for an output's element type; undefined for an unsupported one. */
export function datatypeOfElements(elementType: number): Datatype | undefined {
  return byElementType.get(elementType);
}
