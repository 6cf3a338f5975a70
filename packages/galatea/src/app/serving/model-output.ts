import type { Writable } from "node:stream";

/** What may wait for a slow reader; lines beyond it are counted instead of kept. */
const waitingBytesMax = 1024 * 1024;

/** Where models print: each line as it is, as under Triton, never more of them in memory than the reader may be behind. */
export function modelOutput(stream: Writable): (line: string) => void {
  let droppedLines = 0;
  return (line) => {
    if (stream.writableLength > waitingBytesMax) {
      droppedLines++;
      return;
    }
    if (droppedLines > 0) stream.write(`... ${droppedLines} lines of models not shown: nobody reads fast enough\n`);
    droppedLines = 0;
    // What is printed in one turn leaves in one write: a pipe's writes hold the server up, each of them.
    if (stream.writableCorked === 0) {
      stream.cork();
      process.nextTick(() => stream.uncork());
    }
    stream.write(`${line}\n`);
  };
}
