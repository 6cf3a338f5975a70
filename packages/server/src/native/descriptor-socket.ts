import { Socket } from "node:net";

/**
 * A socket over a descriptor, which it owns. What is read lies in `buffer` until `receive` returns: sockets of one thread may share one,
 * because their reads follow one another.
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
