import { apply, kubectl } from "./installed-chart.ts";

export const storageClass = "laboratory";

/** Creates a volume of 2 GiB in a folder of node1, `/var/lib/volumes/1`, `2` or `3`. Disposal deletes it. */
export async function localVolume(name: string, folder: 1 | 2 | 3): Promise<AsyncDisposable> {
  await apply({
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name },
    spec: {
      capacity: { storage: "2Gi" },
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Retain",
      storageClassName: storageClass,
      local: { path: `/var/lib/volumes/${folder}` },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: ["node1"] }] },
          ],
        },
      },
    },
  });
  return {
    [Symbol.asyncDispose]: async () => {
      await kubectl("delete", "persistentvolume", name, "--wait=false");
    },
  };
}
