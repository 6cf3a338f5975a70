import { Socket } from "node:net";

/**
 * Opens a socket over a descriptor, which it owns. Received bytes are in `buffer` until `receive` returns: sockets of one thread may
 * share a buffer, because they read one after another.
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
