/** The device of a model's memory: the machine, or a GPU by its number. */
export type MemoryDevice = "machine" | `gpu ${number}`;

/** Bytes by device; zero for a device without an entry. */
export type DeviceBytes = ReadonlyMap<MemoryDevice, number>;

export function onMachine(bytes: number): DeviceBytes {
  return new Map([["machine", bytes]]);
}
