/** What one container's answer says of itself to the next. */
export interface CarriedHeaders {
  readonly contentType: string | null;
  /** Null where it is not known, or the sender of the body tells it anyway. */
  readonly byteLength: number | null;
}

/** SageMaker's bound for the content type of a request. */
const contentTypeCharsMax = 1024;

/** Whether a container can be sent this content type. What is none would be told as an error of the container that it is sent to. */
export function canBeSent(contentType: string | null): boolean {
  return (
    contentType === null || (contentType.length <= contentTypeCharsMax && /^[\t\x20-\x7e\x80-\xff]*$/.test(contentType))
  );
}

export interface HopPlace {
  readonly isLast: boolean;
  readonly isMultiModel: boolean;
  /** Null for the first container, which is sent what the client has sent. */
  readonly carried: CarriedHeaders | null;
}

/**
 * What a container of several is sent of a client's headers. A content type is passed on as the container before has said it, with its
 * parameters; what the client accepts is for the last to heed, and the name of a model for the one that has many.
 */
export function hopHeaders(
  asked: Readonly<Record<string, string>>,
  { isLast, isMultiModel, carried }: HopPlace,
): Readonly<Record<string, string>> {
  const {
    "content-type": contentType,
    "content-length": contentLength,
    accept,
    "x-amzn-sagemaker-target-model": targetModel,
    ...others
  } = asked;
  const sent: Record<string, string> = others;
  const type = carried === null ? contentType : carried.contentType;
  const length = carried === null ? contentLength : carried.byteLength;
  if (type !== undefined && type !== null) sent["content-type"] = type;
  if (length !== undefined && length !== null) sent["content-length"] = String(length);
  if (isLast && accept !== undefined) sent["accept"] = accept;
  if (isMultiModel && targetModel !== undefined) sent["x-amzn-sagemaker-target-model"] = targetModel;
  return sent;
}
