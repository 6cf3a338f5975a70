/** Where a model's memory lies: the machine's own, or that of a GPU, by number. */
export type MemoryDevice = "machine" | `gpu ${number}`;

/** Bytes by device; a device that is not named has none. */
export type DeviceBytes = ReadonlyMap<MemoryDevice, number>;

export function onMachine(bytes: number): DeviceBytes {
  return new Map([["machine", bytes]]);
}
