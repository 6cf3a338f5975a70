/**
 * The fourteen datatypes of the KServe v2 protocol and Triton's configuration.
 * `byteSize` is bytes per element, 0 for BYTES (variable: uint32 little-endian length, then the bytes).
 */
export const datatypes = {
  BOOL: { byteSize: 1, configName: "TYPE_BOOL", configNumber: 1 },
  UINT8: { byteSize: 1, configName: "TYPE_UINT8", configNumber: 2 },
  UINT16: { byteSize: 2, configName: "TYPE_UINT16", configNumber: 3 },
  UINT32: { byteSize: 4, configName: "TYPE_UINT32", configNumber: 4 },
  UINT64: { byteSize: 8, configName: "TYPE_UINT64", configNumber: 5 },
  INT8: { byteSize: 1, configName: "TYPE_INT8", configNumber: 6 },
  INT16: { byteSize: 2, configName: "TYPE_INT16", configNumber: 7 },
  INT32: { byteSize: 4, configName: "TYPE_INT32", configNumber: 8 },
  INT64: { byteSize: 8, configName: "TYPE_INT64", configNumber: 9 },
  FP16: { byteSize: 2, configName: "TYPE_FP16", configNumber: 10 },
  FP32: { byteSize: 4, configName: "TYPE_FP32", configNumber: 11 },
  FP64: { byteSize: 8, configName: "TYPE_FP64", configNumber: 12 },
  BYTES: { byteSize: 0, configName: "TYPE_STRING", configNumber: 13 },
  BF16: { byteSize: 2, configName: "TYPE_BF16", configNumber: 14 },
} as const;

export type Datatype = keyof typeof datatypes;
export type ConfigDatatype = (typeof datatypes)[Datatype]["configName"];

export function isDatatype(name: string): name is Datatype {
  return Object.hasOwn(datatypes, name);
}

const byConfigNumber = new Map<number, Datatype>(
  Object.entries(datatypes).map(([name, row]) => [row.configNumber, name as Datatype]),
);

/** Returns the datatype of a protobuf enum number. Messages of Python workers use the same numbers. */
export function datatypeFromNumber(configNumber: number): Datatype | undefined {
  return byConfigNumber.get(configNumber);
}
