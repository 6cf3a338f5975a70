/** What the event loop and a run thread share. The event loop writes all but `status` before it sets `state`. */
export interface RunMailbox {
  /** One of `mailState`. */
  readonly state: Int32Array<SharedArrayBuffer>;
  /** 1 when the run asked for last has ended. */
  readonly ended: Int32Array<SharedArrayBuffer>;
  /** 1 when the thread shall move to `processors` before it runs. */
  readonly moves: Int32Array<SharedArrayBuffer>;
  /** A cpu_set_t. */
  readonly processors: Uint8Array<SharedArrayBuffer>;
  /** The parameters of OrtApi's `Run` in their order. */
  readonly values: BigUint64Array<SharedArrayBuffer>;
  /** The OrtStatus of the run that has ended, 0 for success. */
  readonly status: BigUint64Array<SharedArrayBuffer>;
}

export const mailState = { empty: 0, run: 1, stop: 2 } as const;

/** Bytes of a cpu_set_t: 1024 processors. */
const setBytes = 128;
const valueCount = 8;
const valuesAt = 16 + setBytes;
const statusAt = valuesAt + valueCount * 8;

export function makeMailboxMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(statusAt + 8);
}

export function mailboxOf(memory: SharedArrayBuffer): RunMailbox {
  return {
    state: new Int32Array(memory, 0, 1),
    ended: new Int32Array(memory, 4, 1),
    moves: new Int32Array(memory, 8, 1),
    processors: new Uint8Array(memory, 16, setBytes),
    values: new BigUint64Array(memory, valuesAt, valueCount),
    status: new BigUint64Array(memory, statusAt, 1),
  };
}
