/** Headers of one container's response for the request to the next. */
export interface ChainedHeaders {
  readonly contentType: string | null;
  /** Null if it is unknown, or if the sender of the body sets it anyway. */
  readonly byteLength: number | null;
}

/** SageMaker's maximum length of a request's content type. */
const contentTypeCharsMax = 1024;

/**
 * Returns whether a content type is valid in a request. Sending an invalid one would be reported as an error of the
 * receiving container.
 */
export function isValidContentType(contentType: string | null): boolean {
  return (
    contentType === null || (contentType.length <= contentTypeCharsMax && /^[\t\x20-\x7e\x80-\xff]*$/.test(contentType))
  );
}

export interface HopPosition {
  readonly isLast: boolean;
  readonly isMultiModel: boolean;
  /** Null for the first container, which gets the client's headers. */
  readonly carried: ChainedHeaders | null;
}

/**
 * Returns the headers for one of several containers. The content type is the one of the previous container, with its
 * parameters; Accept is for the last container, and the name of a model for the multi-model one.
 */
export function hopHeaders(
  headers: Readonly<Record<string, string>>,
  { isLast, isMultiModel, carried }: HopPosition,
): Readonly<Record<string, string>> {
  const {
    "content-type": contentType,
    "content-length": contentLength,
    accept,
    "x-amzn-sagemaker-target-model": targetModel,
    ...others
  } = headers;
  const sent: Record<string, string> = others;
  const type = carried === null ? contentType : carried.contentType;
  const length = carried === null ? contentLength : carried.byteLength;
  if (type !== undefined && type !== null) sent["content-type"] = type;
  if (length !== undefined && length !== null) sent["content-length"] = String(length);
  if (isLast && accept !== undefined) sent["accept"] = accept;
  if (isMultiModel && targetModel !== undefined) sent["x-amzn-sagemaker-target-model"] = targetModel;
  return sent;
}
