/** The device that contains a model's memory: the machine's main memory, or a GPU with its number. */
export type MemoryDevice = "machine" | `gpu ${number}`;

/** Bytes by device. A device without an entry has 0 bytes. */
export type DeviceBytes = ReadonlyMap<MemoryDevice, number>;

export function machineBytes(bytes: number): DeviceBytes {
  return new Map([["machine", bytes]]);
}
