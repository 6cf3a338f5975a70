import type { Writable } from "node:stream";

/** Maximum bytes that wait for a slow reader. Further lines are dropped and counted. */
const waitingBytesMax = 1024 * 1024;

/** Returns a writer for the output of models. As in Triton, lines are written unchanged. Its memory is bounded. */
export function modelOutput(stream: Writable): (line: string) => void {
  let droppedLines = 0;
  return (line) => {
    if (stream.writableLength > waitingBytesMax) {
      droppedLines++;
      return;
    }
    if (droppedLines > 0) stream.write(`... ${droppedLines} lines of model output dropped: the reader is too slow\n`);
    droppedLines = 0;
    // Writes all lines of one tick together, because each write to a pipe blocks the server.
    if (stream.writableCorked === 0) {
      stream.cork();
      process.nextTick(() => stream.uncork());
    }
    stream.write(`${line}\n`);
  };
}
