import type { BlockSource, Tensor } from "../../tensor/index.ts";
import {
  reserveBodyMemory,
  asBodyMemory,
  declaredLength,
  discardChunk,
  exchangeMemoryBytes,
  bufferBody,
  readBody,
  type Exchange,
  type HttpLimits,
} from "../http-listener/index.ts";

/** A body that is also the only element of a BYTES tensor (length field, then the bytes). */
export interface PayloadBody {
  readonly bytes: Uint8Array;
  readonly tensor: Tensor;
}

const lengthBytes = 4;

/**
 * Reads a body into memory that the model can access. A body of known length is copied only once, from the socket's buffer. The caller owns
 * the tensor.
 */
export async function readPayload(
  exchange: Exchange,
  arena: BlockSource | null,
  limits: HttpLimits,
): Promise<PayloadBody> {
  const declared = declaredLength(exchange);
  if (declared === -1) return await gatherPayload(exchange, arena, limits);
  if (declared > limits.bodyBytesMax) await readBody(exchange, limits, { write: () => {} });
  if (arena === null) reserveBodyMemory(exchange, declared);
  const body = asBodyMemory(() => placePayload(declared, arena));
  let at = 0;
  try {
    await readBody(exchange, limits, {
      write(chunk) {
        body.bytes.set(chunk, at);
        at += chunk.length;
        discardChunk(chunk);
      },
    });
  } catch (error) {
    body.tensor.block?.release();
    throw error;
  }
  return body;
}

async function gatherPayload(exchange: Exchange, arena: BlockSource | null, limits: HttpLimits): Promise<PayloadBody> {
  const gathered = await bufferBody(exchange, limits);
  try {
    const bytes = gathered.bytes();
    const body = placePayload(bytes.length, arena);
    body.bytes.set(bytes);
    // The arena now accounts for the bytes. Plain memory stays charged to the exchange.
    if (arena !== null) exchange.memory.shrinkTo(exchangeMemoryBytes);
    return body;
  } finally {
    gathered.discard();
  }
}

function placePayload(byteLength: number, arena: BlockSource | null): PayloadBody {
  const block = arena === null ? null : arena.allocate(byteLength + lengthBytes);
  const data = block === null ? new Uint8Array(byteLength + lengthBytes) : block.bytes;
  new DataView(data.buffer, data.byteOffset).setUint32(0, byteLength, true);
  return {
    bytes: data.subarray(lengthBytes),
    tensor: { name: "body", datatype: "BYTES", shape: [1], data, block },
  };
}
