"""Real boto3 against the gateway at argv[1]: conditions, and arguments that S3 rejects."""

import base64
import concurrent.futures
import datetime
import hashlib
import threading
import time

from checks import MIB, check, client, got, put, refused, run, s3


def error_of(reply):
    return {error["Key"]: error["Code"] for error in reply.get("Errors", [])}


def delete_many(*objects):
    return s3.delete_objects(Bucket="bkt", Delete={"Objects": list(objects)})


def upload(key, **more):
    return {
        "Bucket": "bkt",
        "Key": key,
        "UploadId": s3.create_multipart_upload(Bucket="bkt", Key=key, **more)["UploadId"],
    }


def tags_of(key):
    return {tag["Key"]: tag["Value"] for tag in s3.get_object_tagging(Bucket="bkt", Key=key)["TagSet"]}


@check
def buckets_by_prefix_and_page():
    s3.create_bucket(Bucket="bkt")
    for name in ["logs-1", "logs-2", "logs-3"]:
        s3.create_bucket(Bucket=name)
    names = lambda reply: [bucket["Name"] for bucket in reply["Buckets"]]
    reply = s3.list_buckets(Prefix="logs-", MaxBuckets=2)
    assert names(reply) == ["logs-1", "logs-2"] and reply["Prefix"] == "logs-", reply
    rest = s3.list_buckets(Prefix="logs-", MaxBuckets=2, ContinuationToken=reply["ContinuationToken"])
    assert names(rest) == ["logs-3"] and "ContinuationToken" not in rest, rest
    assert names(s3.list_buckets()) == ["bkt", "logs-1", "logs-2", "logs-3"] and "Prefix" not in s3.list_buckets()
    for name in ["logs-1", "logs-2", "logs-3"]:
        s3.delete_bucket(Bucket=name)


@check
def delete_if_match():
    tag = put("guarded")["ETag"]
    refused("PreconditionFailed", lambda: s3.delete_object(Bucket="bkt", Key="guarded", IfMatch='"0123"'), 412)
    refused("PreconditionFailed", lambda: s3.delete_object(Bucket="bkt", Key="none", IfMatch="*"), 412)
    assert got("guarded") == b"x"
    s3.delete_object(Bucket="bkt", Key="guarded", IfMatch=tag)
    refused("NoSuchKey", lambda: got("guarded"))
    put("guarded")
    s3.delete_object(Bucket="bkt", Key="guarded", IfMatch="*")
    refused("NoSuchKey", lambda: got("guarded"))


@check
def delete_if_length_and_date_match():
    put("guarded", b"12345")
    modified = s3.head_object(Bucket="bkt", Key="guarded")["LastModified"]
    earlier = modified - datetime.timedelta(seconds=10)
    refused("PreconditionFailed", lambda: s3.delete_object(Bucket="bkt", Key="guarded", IfMatchSize=4), 412)
    refused(
        "PreconditionFailed",
        lambda: s3.delete_object(Bucket="bkt", Key="guarded", IfMatchLastModifiedTime=earlier),
        412,
    )
    s3.delete_object(Bucket="bkt", Key="guarded", IfMatchSize=5, IfMatchLastModifiedTime=modified)
    refused("NoSuchKey", lambda: got("guarded"))


@check
def delete_many_by_condition_and_version():
    tag = put("a")["ETag"]
    put("b")
    put("c")
    put("d", b"12345")
    put("e")
    reply = delete_many(
        {"Key": "a", "ETag": tag},
        {"Key": "b", "ETag": '"0123"'},
        {"Key": "c", "VersionId": "3HL4"},
        {"Key": "d", "Size": 4},
        {"Key": "e", "VersionId": "null"},
    )
    assert error_of(reply) == {"b": "PreconditionFailed", "c": "NoSuchVersion", "d": "PreconditionFailed"}, reply
    assert reply["Errors"][1]["VersionId"] == "3HL4"
    assert [deleted["Key"] for deleted in reply["Deleted"]] == ["a", "e"] and reply["Deleted"][1]["VersionId"] == "null"
    assert [object["Key"] for object in s3.list_objects_v2(Bucket="bkt")["Contents"]] == ["b", "c", "d"]
    delete_many({"Key": "b"}, {"Key": "c"}, {"Key": "d"})


@check
def an_aborted_part_has_no_upload():
    for _ in range(5):
        part = upload("aborted")
        started = threading.Event()

        class Slow:
            left = 6

            def read(self, count=-1):
                started.set()
                self.left -= 1
                time.sleep(0.02)
                return b"" if self.left < 0 else b"x" * MIB

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            quick = client(request_checksum_calculation="when_required", signature_version="s3")
            sent = pool.submit(quick.upload_part, **part, PartNumber=1, Body=Slow(), ContentLength=6 * MIB)
            started.wait(5)
            s3.abort_multipart_upload(**part)
            refused("NoSuchUpload", sent.result, 404)


@check
def buckets_that_end_under_way():
    wanted = {"NoSuchBucket", "BucketNotEmpty", "BucketAlreadyOwnedByYou", "NoSuchUpload", "NoSuchKey"}

    def outcome(call):
        try:
            call()
        except Exception as error:
            return error.response["Error"]["Code"] if hasattr(error, "response") else repr(error)

    calls = [
        lambda: s3.create_bucket(Bucket="storm"),
        lambda: s3.delete_bucket(Bucket="storm"),
        lambda: s3.put_object(Bucket="storm", Key="k", Body=b"x" * 3 * MIB),
        lambda: s3.delete_object(Bucket="storm", Key="k"),
        lambda: s3.create_multipart_upload(Bucket="storm", Key="m"),
    ]
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        outcomes = set(pool.map(outcome, calls * 40))
    assert outcomes - {None} <= wanted, outcomes
    s3.delete_object(Bucket="storm", Key="k") if "storm" in [
        b["Name"] for b in s3.list_buckets()["Buckets"]
    ] else s3.create_bucket(Bucket="storm")
    s3.delete_bucket(Bucket="storm")


@check
def completing_in_parallel_answers_all_the_same():
    part = upload("joined")
    tag = s3.upload_part(**part, PartNumber=1, Body=b"j" * MIB)["ETag"]
    done = lambda _: s3.complete_multipart_upload(**part, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": tag}]})[
        "ETag"
    ]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(done, range(8)))) == 1


@check
def protection_that_is_not_there_is_refused():
    key = base64.b64encode(b"k" * 32).decode()
    refused("NotImplemented", lambda: put("sse", SSECustomerAlgorithm="AES256", SSECustomerKey=key), 501)
    refused("InvalidRequest", lambda: put("locked", ObjectLockLegalHoldStatus="ON"), 400)
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    reply = refused(
        "InvalidRequest", lambda: put("locked", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=later), 400
    )
    assert reply["Error"]["Message"] == "Bucket is missing Object Lock Configuration"
    refused("NotImplemented", lambda: s3.create_bucket(Bucket="locked", ObjectLockEnabledForBucket=True), 501)
    refused("InvalidArgument", lambda: put("sse", ServerSideEncryption="ROT13"), 400)
    refused("NotImplemented", lambda: put("sse", ServerSideEncryption="aws:kms", SSEKMSKeyId="alias/mine"), 501)
    refused("NotImplemented", lambda: put("sse", ServerSideEncryption="aws:kms", BucketKeyEnabled=True), 501)
    refused(
        "NotImplemented",
        lambda: s3.create_multipart_upload(Bucket="bkt", Key="sse", ServerSideEncryption="aws:kms", SSEKMSKeyId="k"),
        501,
    )
    refused("InvalidStorageClass", lambda: put("cold", StorageClass="FREEZER"), 400)
    put("src")
    copy = lambda **more: s3.copy_object(Bucket="bkt", Key="dst", CopySource="bkt/src", **more)
    refused("AccessDenied", lambda: copy(ExpectedSourceBucketOwner="999988887777"), 403)
    copy(ExpectedSourceBucketOwner="111122223333")
    assert s3.list_objects_v2(Bucket="bkt", Prefix="sse")["KeyCount"] == 0


@check
def copies_and_their_tags():
    put("src", b"copied", Metadata={"a": "b"}, Tagging="t=1", ServerSideEncryption="AES256")
    copy = lambda key="dst", **more: s3.copy_object(Bucket="bkt", Key=key, CopySource="bkt/src", **more)
    copy()
    assert tags_of("dst") == {"t": "1"}
    copy(MetadataDirective="REPLACE", Metadata={"c": "d"})
    assert tags_of("dst") == {"t": "1"} and s3.head_object(Bucket="bkt", Key="dst")["Metadata"] == {"c": "d"}
    copy(TaggingDirective="REPLACE", Tagging="u=2")
    assert tags_of("dst") == {"u": "2"} and s3.head_object(Bucket="bkt", Key="dst")["Metadata"] == {"a": "b"}
    copy(TaggingDirective="REPLACE")
    assert tags_of("dst") == {}
    refused("InvalidArgument", lambda: copy(MetadataDirective="FOO"), 400)
    refused("InvalidArgument", lambda: copy(TaggingDirective="FOO"), 400)


@check
def copies_to_itself():
    put("self", b"same", Metadata={"a": "b"})
    copy = lambda **more: s3.copy_object(Bucket="bkt", Key="self", CopySource="bkt/self", **more)
    refused("InvalidRequest", copy, 400)
    copy(ServerSideEncryption="AES256")
    copy(StorageClass="STANDARD_IA")
    copy(WebsiteRedirectLocation="/elsewhere")
    head = s3.head_object(Bucket="bkt", Key="self")
    assert head["WebsiteRedirectLocation"] == "/elsewhere" and head["Metadata"] == {"a": "b"} and got("self") == b"same"


@check
def tags_beyond_the_limits():
    refused("BadRequest", lambda: put("tags", Tagging="&".join("t%d=v" % n for n in range(11))), 400)
    refused("InvalidArgument", lambda: put("tags", Tagging="a=1&a=2"), 400)
    refused("InvalidTag", lambda: put("tags", Tagging="k" * 129 + "=1"), 400)
    put("tags", Tagging="&".join("t%d=v" % n for n in range(10)))


@check
def part_copies_lie_within_their_source():
    put("ten", b"0123456789")
    part = upload("ranged")
    copy = lambda text: s3.upload_part_copy(**part, PartNumber=1, CopySource="bkt/ten", CopySourceRange=text)
    for text in ["bytes=0-10", "bytes=5-", "bytes=-3", "bytes=7-3", "0-4", "bytes=0-1,3-4"]:
        refused("InvalidArgument", lambda: copy(text), 400)
    assert copy("bytes=2-9")["CopyPartResult"]["ETag"] == '"%s"' % hashlib.md5(b"23456789").hexdigest()
    s3.abort_multipart_upload(**part)


@check
def completions_are_held_to_what_they_say():
    part = upload("held", ChecksumAlgorithm="CRC32")
    refused(
        "InvalidRequest", lambda: s3.upload_part(**part, PartNumber=1, Body=b"hello", ChecksumAlgorithm="SHA256"), 400
    )
    sent = s3.upload_part(**part, PartNumber=1, Body=b"hello", ChecksumAlgorithm="CRC32")
    named = {"Parts": [{"PartNumber": 1, "ETag": sent["ETag"], "ChecksumCRC32": sent["ChecksumCRC32"]}]}
    done = lambda **more: s3.complete_multipart_upload(**part, MultipartUpload=named, **more)
    refused("InvalidRequest", lambda: done(MpuObjectSize=6), 400)
    refused("InvalidRequest", lambda: done(ChecksumType="FULL_OBJECT"), 400)
    done(MpuObjectSize=5, ChecksumType="COMPOSITE")
    assert got("held") == b"hello"


@check
def checksums_are_one_and_whole():
    crc, sha = "NhCmhg==", base64.b64encode(hashlib.sha1(b"hello").digest()).decode()
    refused("InvalidRequest", lambda: put("sum", b"hello", ChecksumCRC32=crc, ChecksumSHA1=sha), 400)
    refused("InvalidRequest", lambda: put("sum", b"hello", ChecksumCRC32="NhCm"), 400)
    refused("InvalidRequest", lambda: put("sum", b"hello", ChecksumCRC32="not base64"), 400)
    refused(
        "NotImplemented",
        lambda: put("sum", b"hello", ChecksumSHA512=base64.b64encode(hashlib.sha512(b"hello").digest()).decode()),
        501,
    )


@check
def uploads_go_on_behind_one_that_ended():
    made = [upload(key) for key in ["p", "p", "p", "q"]]
    shown = lambda reply: [(one["Key"], one["UploadId"]) for one in reply.get("Uploads", [])]
    everything = shown(s3.list_multipart_uploads(Bucket="bkt"))
    assert sorted(everything) == sorted((one["Key"], one["UploadId"]) for one in made)
    first = s3.list_multipart_uploads(Bucket="bkt", MaxUploads=1)
    marker = {"KeyMarker": first["NextKeyMarker"], "UploadIdMarker": first["NextUploadIdMarker"]}
    s3.abort_multipart_upload(Bucket="bkt", Key=first["NextKeyMarker"], UploadId=first["NextUploadIdMarker"])
    assert shown(s3.list_multipart_uploads(Bucket="bkt", **marker)) == everything[1:]
    assert shown(s3.list_multipart_uploads(Bucket="bkt", KeyMarker="p")) == everything[3:]
    for key, upload_id in everything[1:]:
        s3.abort_multipart_upload(Bucket="bkt", Key=key, UploadId=upload_id)


@check
def subresources_of_any_year_are_refused_by_name():
    for call in [s3.get_bucket_abac, s3.get_bucket_acl, s3.get_bucket_metadata_configuration]:
        refused("NotImplemented", lambda: call(Bucket="bkt"), 501)


run()
