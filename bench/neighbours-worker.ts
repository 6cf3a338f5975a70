/** What others do to a platform meanwhile, in a thread of its own, so that it does not hold up the client that is measured. */
import { setTimeout as delay } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { CloudWatchClient, PutMetricDataCommand } from "@aws-sdk/client-cloudwatch";
import { S3Client } from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { benchBucket, clientSettings } from "./platform.ts";

interface Neighbours {
  readonly port: number;
  readonly uploadMebibytes: number;
  readonly rowsPerSecond: number;
}

/** What the thread says when the upload is whole. */
export interface NeighboursDone {
  readonly rows: number;
  readonly seconds: number;
}

const rowsPerCall = 100;
const { port, uploadMebibytes, rowsPerSecond } = workerData as Neighbours;

const settings = clientSettings(port);
const s3 = new S3Client({ ...settings, forcePathStyle: true });
const cloudwatch = new CloudWatchClient(settings);
const partSize = 8 * 2 ** 20;
const Body = Buffer.alloc(uploadMebibytes * 2 ** 20, "bytes of an archive ");
const upload = new Upload({ client: s3, params: { Bucket: benchBucket, Key: "large", Body }, partSize, queueSize: 10 });
const over = new AbortController();
const uploaded = upload.done().finally(() => over.abort());

const startMs = performance.now();
let rows = 0;
while (!over.signal.aborted) {
  const first = rows % rowsPerSecond;
  const MetricData = Array.from({ length: rowsPerCall }, (_, index) => ({
    MetricName: `metric-${first + index}`,
    Timestamp: new Date(),
    Value: index,
  }));
  await cloudwatch.send(new PutMetricDataCommand({ Namespace: "Bench", MetricData }));
  rows += rowsPerCall;
  const aheadMs = (rows * 1000) / rowsPerSecond - (performance.now() - startMs);
  await Promise.race([delay(Math.max(0, aheadMs)), uploaded]);
}
await uploaded;
const done: NeighboursDone = { rows, seconds: (performance.now() - startMs) / 1000 };
parentPort?.postMessage(done, []);
s3.destroy();
cloudwatch.destroy();
