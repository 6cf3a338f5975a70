/** Background load on the platform, in its own thread so that it does not delay the measured client. */
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { CloudWatchClient, PutMetricDataCommand } from "@aws-sdk/client-cloudwatch";
import { S3Client } from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { benchBucket, clientSettings } from "./platform.ts";

export interface Neighbours {
  readonly port: number;
  /** Size of each object in bytes; one upload is always running. */
  readonly uploadMebibytes: number;
  readonly rowsPerSecond: number;
}

/** The thread's message after the stop was requested and its current object is finished. */
export interface NeighboursDone {
  readonly rows: number;
  readonly rowsSeconds: number;
  readonly mebibytes: number;
  readonly mebibytesSeconds: number;
}

const rowsPerCall = 100;
const { port, uploadMebibytes, rowsPerSecond } = workerData as Neighbours;

const settings = clientSettings(port);
const s3 = new S3Client({ ...settings, forcePathStyle: true });
const cloudwatch = new CloudWatchClient(settings);
const partSize = 8 * 2 ** 20;
const Body = Buffer.alloc(uploadMebibytes * 2 ** 20, "bytes of an archive ");
const over = new AbortController();
const reported = once(parentPort!, "message").then(() => over.abort());

const startMs = performance.now();
const passedSeconds = () => (performance.now() - startMs) / 1000;
let [rows, mebibytes] = [0, 0];

async function upload(): Promise<void> {
  while (!over.signal.aborted) {
    const params = { Bucket: benchBucket, Key: "large", Body };
    await new Upload({ client: s3, params, partSize, queueSize: 10 }).done();
    mebibytes += uploadMebibytes;
  }
}

async function record(): Promise<void> {
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
    await Promise.race([delay(Math.max(0, aheadMs)), reported]);
  }
  const rowsSeconds = passedSeconds();
  await uploading;
  const done: NeighboursDone = { rows, rowsSeconds, mebibytes, mebibytesSeconds: passedSeconds() };
  parentPort?.postMessage(done, []);
}

const uploading = upload();
await record();
s3.destroy();
cloudwatch.destroy();
