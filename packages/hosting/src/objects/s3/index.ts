/** An object store on an S3 service: AWS, MinIO, Ceph or another Galatea. */
export { openS3Store } from "./s3-store.ts";
