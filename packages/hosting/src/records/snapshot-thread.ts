import { workerData } from "node:worker_threads";
import { makeSnapshot, type SnapshotPlan } from "./snapshot-files.ts";

export type SnapshotThreadData = SnapshotPlan;

makeSnapshot(workerData as SnapshotThreadData);
