/**
 * S3's protocol over a BucketStore: path-style and virtual-host addresses, signatures in headers and queries,
 * aws-chunked bodies, ranges and conditions, multipart uploads, copies, and both versions of listings. A parameter that
 * is not implemented is rejected with an error that names it.
 */
export { WriterQuotas } from "./object-writers.ts";
export { s3Service, type S3Dependencies } from "./service.ts";
