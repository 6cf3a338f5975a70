import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("models/faulty.py", import.meta.url));

/** DO selects the fault. OUT returns VALUE, and TEXT has the results of the fault. */
export const faultyConfig = `backend: "python"
max_batch_size: 0
input [
  { name: "DO" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "VALUE" data_type: TYPE_FP32 dims: [ -1 ] }
]
output [
  { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] },
  { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] }
]
`;

/** Writes `<repository>/<name>` with the program models/faulty.py, or with `text`. */
export async function writeFaultyModel(
  repository: string,
  name: string,
  { more = "", text = null, config = faultyConfig }: { more?: string; text?: string | null; config?: string } = {},
): Promise<void> {
  const directory = join(repository, name);
  await mkdir(join(directory, "1"), { recursive: true });
  await writeFile(join(directory, "config.pbtxt"), config + more);
  if (text === null) await copyFile(program, join(directory, "1", "model.py"));
  else await writeFile(join(directory, "1", "model.py"), text);
}
