import { Socket } from "node:net";

/**
 * Opens a socket over a descriptor and takes ownership of it. Received bytes are in `buffer` only until `receive` returns, so all sockets
 * of a thread may share one buffer.
 */
export function openDescriptorSocket(fd: number, buffer: Buffer, receive: (byteLength: number) => void): Socket {
  return new Socket({
    fd,
    readable: true,
    writable: true,
    onread: {
      buffer,
      callback: (byteLength) => {
        receive(byteLength);
        return true;
      },
    },
  });
}
